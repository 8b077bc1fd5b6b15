// Work on host memory that is done at once, on the calling thread, where an instruction would cost more than the work. Results are bitwise
// equal to the instruction's.
#pragma once

#include <cstdint>

#include "ir/host_loop.h"
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

// Operands are contiguous. The cpu backend has one (Backend::host_work).
class HostWork {
 public:
  // The kernel of a program over consecutive elements. It lives as long as the process.
  virtual const DirectKernel& kernel(const ir::Program& program) = 0;
  // c = a b for matrices (m, k) and (k, n). False: unsupported; nothing was done.
  virtual bool multiply(DType type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) = 0;
  // out = the sum of n elements. False: unsupported; nothing was done.
  virtual bool add_up(DType type, int64_t n, const void* in, void* out) = 0;
  // Runs a loop on the calling thread and the thread pool.
  virtual void run(const ir::HostLoop& loop) = 0;

 protected:
  ~HostWork() = default;
};
// The cpu backend's. The first call makes the backends, if nothing has done so: memory of other libraries (a NumPy array's, a Python list's)
// may be all that exists when the first operator runs.
HostWork& host_work();

}  // namespace naru::runtime
