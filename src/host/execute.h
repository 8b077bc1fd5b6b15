// Executes instructions on host memory: the one implementation under the cpu and the virtual backend.
#pragma once

#include <string>

#include "ir/instruction.h"

namespace naru::host {

// Runs it to its end on the calling thread and the pool. All addresses are host addresses. Throws IndexError for a position out of bounds (nothing is
// written then), and the errors of the libraries used.
void execute(const ir::Instruction& instruction);

// The kernel of a one-step program over consecutive elements, for callers that run small work themselves. Never null.
// Lives as long as the process. `context` is passed on to run().
struct SmallKernel {
  ir::MapFunction machine = nullptr;  // null where only the interpreter can run it
  const ir::MapKernel* kernel = nullptr;
  void run(void* const* operands, const uint64_t* params, int64_t n) const;
};
const SmallKernel& small_kernel(const ir::Program& program);

// Machine code on or off (NARU_JIT); off: the interpreter. For tests: returns what it was.
bool set_jit(bool on) noexcept;
// Instruction set used for machine code: "avx512", "avx2", "none".
const char* isa_name() noexcept;
bool set_isa(const char* name);

// Libraries in use for products: "oneDNN 2.6.3, OpenBLAS 0.3.34", or "own kernels".
std::string product_libraries();

}  // namespace naru::host
