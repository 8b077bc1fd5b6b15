// Random expression graphs over all primitives, for comparing two ways of running them.
#pragma once

#include "render/kernel_support.h"

namespace naru::test {

struct RandomKernel {
  ir::MapKernel kernel;
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint64_t> params;
};

// About `size` operations; inputs of n elements. With `results` > 0 there are as many outputs, else one result of
// `type` without an output, as reductions have. With `rows` > 0 some inputs have one element for each of so many rows.
RandomKernel random_kernel(uint64_t seed, int size, int64_t n, int results, ir::VType type = ir::VType::F32, int64_t rows = 0);

}  // namespace naru::test
