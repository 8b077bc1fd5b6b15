// Executes instructions on host memory: the one implementation under the cpu and the virtual backend.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/instruction.h"
#include "runtime/backend.h"
#include "runtime/small_work.h"

namespace naru::host {

// Runs it to its end on the calling thread and the pool. All addresses are host addresses. Throws IndexError for a
// position out of bounds (nothing is written then), and the errors of the libraries used.
void execute(const ir::Instruction& instruction);

// Instructions with all that follows from them worked out once, done one after another by run(). They must stay where they are; parameters of
// programs may change.
class PreparedList {
 public:
  explicit PreparedList(std::span<const ir::Instruction> work);
  ~PreparedList();
  void run() const;

 private:
  std::vector<std::unique_ptr<class Prepared>> list_;
};

// Compiles what the instruction needs (a kernel of the user's own), so that what the compiler says is heard now.
void prepare(const ir::Instruction& instruction);

// The kernel of a one-step program over consecutive elements, for callers that run small work themselves. Never null.
// Lives as long as the process.
using SmallKernel = runtime::DirectKernel;
const SmallKernel& small_kernel(const ir::Program& program);

// c = a b at once, contiguous, with the bits of ir::MatMul, where that would be one call of a library. False: nothing done.
bool small_matmul(DType type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);
// The sum of n consecutive elements, with the bits of ir::Reduce. False: not for these; nothing done.
bool small_sum(DType type, int64_t n, const void* in, void* out);

// Machine code on or off (NARU_JIT); off: the interpreter. For tests: returns what it was.
bool set_jit(bool on) noexcept;
// Instruction set used for machine code: "avx512", "avx2", "none".
const char* isa_name() noexcept;
bool set_isa(const char* name);

// Libraries in use for products and convolutions: "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)", or "own kernels". Opens them.
std::string matmul_libraries();
// Which of them may be used: "own", "dnnl", "openblas", or "" for all (NARU_MATMUL; for tests). Throws RuntimeError
// for another word.
void set_matmul_libraries(const std::string& choice);

}  // namespace naru::host
