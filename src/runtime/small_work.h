// Small work on the host's memory, done at once on the calling thread, where an instruction would cost more than the work. Operands are
// consecutive elements; the bits are those of the instruction.
#pragma once

#include <cstdint>

#include "ir/interpret.h"
#include "ir/program.h"

namespace naru::runtime {

// A program's kernel: machine code, or (machine null) what the interpreter runs.
struct DirectKernel {
  ir::MapFunction machine = nullptr;
  const ir::MapKernel* kernel = nullptr;
  void run(void* const* operands, const uint64_t* params, int64_t n) const {
    machine ? machine(operands, params, n, 0) : ir::interpret(*kernel, operands, params, n, 0);
  }
};

struct SmallWork {
  // Lives as long as the process.
  const DirectKernel& (*kernel_of)(const ir::Program&) = nullptr;
  // c = a b for matrices (m, k) and (k, n). False: not for these; nothing is done.
  bool (*matmul)(DType, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) = nullptr;
  // out = the sum of n elements. False: not for these; nothing is done.
  bool (*sum)(DType, int64_t n, const void* in, void* out) = nullptr;
};
// The cpu backend hands it over when it is made, which is before there is a tensor.
inline constinit SmallWork small_work;

}  // namespace naru::runtime
