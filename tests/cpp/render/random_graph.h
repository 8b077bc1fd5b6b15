// Random expression graphs over all primitives, for comparing two implementations.
#pragma once

#include "render/kernel_support.h"

namespace naru::test {

struct RandomKernel {
  ir::MapKernel kernel;
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint64_t> params;
};

// A graph of about `size` operations; inputs have n elements. With `results` > 0 there are that many outputs; otherwise one result of `type`
// without an output, as in reductions. With `rows` > 0 some inputs have one element per row.
RandomKernel random_kernel(uint64_t seed, int size, int64_t n, int results, ir::VType type = ir::VType::F32, int64_t rows = 0);

}  // namespace naru::test
