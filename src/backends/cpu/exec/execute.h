// Executes instructions on host memory. The cpu and the virtual backend share this implementation.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/instruction.h"
#include "runtime/device/backend.h"
#include "runtime/queue/host_work.h"

namespace naru::cpu {

// Runs the instruction to completion on the calling thread and the pool. All addresses are host addresses. Throws IndexError if an index is
// out of bounds (nothing is written then), and the errors of the libraries used.
void execute(const ir::Instruction& instruction);

// Instructions planned once; run() executes them in order. The instructions must outlive the list and must not move; the parameters of
// their programs may change.
class PreparedList {
 public:
  explicit PreparedList(std::span<const ir::Instruction> work);
  ~PreparedList();
  void run() const;

 private:
  std::vector<std::unique_ptr<class Prepared>> list_;
};

// Compiles what the instruction needs (a user kernel), so that compiler errors are reported now.
void prepare(const ir::Instruction& instruction);

// The kernel of a one-step program over consecutive elements, for callers that run small work themselves. Never null. Lives as long as the
// process.
using SmallKernel = runtime::DirectKernel;
const SmallKernel& small_kernel(const ir::Program& program);

// c = a b for contiguous matrices, immediately, with the bits of ir::MatMul, if that would be a single library call. Returns false, and
// does nothing, otherwise.
bool small_matmul(DType type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);
// The sum of n consecutive elements, with the bits of ir::Reduce. Returns false, and does nothing, if it does not support them.
bool small_sum(DType type, int64_t n, const void* in, void* out);

// Turns machine code on or off (NARU_JIT); off means the interpreter. For tests. Returns the previous setting.
bool set_jit(bool on) noexcept;
// Instruction set of generated machine code: "avx512", "avx2", "none".
const char* isa_name() noexcept;
bool set_isa(const char* name);

// Libraries used for products and convolutions: "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)", or "own kernels". Opens them.
std::string matmul_libraries();
// Selects the libraries that may be used: "own", "dnnl", "openblas", or "" for all (NARU_MATMUL; for tests). Throws RuntimeError for any
// other word.
void set_matmul_libraries(const std::string& choice);

}  // namespace naru::cpu
