// Small work on host memory, done immediately on the calling thread, for sizes where an instruction would cost more than the work. Operands
// are contiguous; results are bitwise equal to the instruction's.
#pragma once

#include <atomic>
#include <cstdint>

#include "ir/interpreter/interpret.h"
#include "ir/program.h"

namespace naru::runtime {

// A program's kernel: machine code, or the interpreter's kernel if `machine` is null.
struct DirectKernel {
  ir::MapFunction machine = nullptr;
  const ir::MapKernel* kernel = nullptr;
  void run(void* const* operands, const uint64_t* params, int64_t n) const {
    machine ? machine(operands, params, n, 0) : ir::interpret(*kernel, operands, params, n, 0);
  }
};

// Functions for small work, supplied by the cpu backend when it is created. The initial functions create the backend and call again:
// external memory (a NumPy array's, a Python list's) may be all that exists when the first operator runs.
struct SmallWork {
  using KernelOf = const DirectKernel& (*)(const ir::Program&);
  using Matmul = bool (*)(DType, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);
  using Sum = bool (*)(DType, int64_t n, const void* in, void* out);

  // The kernel lives as long as the process.
  const DirectKernel& kernel(const ir::Program& program) const { return kernel_of.load(std::memory_order_acquire)(program); }
  // c = a b for matrices (m, k) and (k, n). False: unsupported; nothing was done.
  bool multiply(DType t, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) const {
    return matmul.load(std::memory_order_acquire)(t, m, n, k, a, b, c);
  }
  // out = the sum of n elements. False: unsupported; nothing was done.
  bool add_up(DType t, int64_t n, const void* in, void* out) const { return sum.load(std::memory_order_acquire)(t, n, in, out); }

  std::atomic<KernelOf> kernel_of;
  std::atomic<Matmul> matmul;
  std::atomic<Sum> sum;
};
extern constinit SmallWork small_work;

}  // namespace naru::runtime
