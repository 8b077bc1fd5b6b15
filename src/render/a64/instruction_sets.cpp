// The row of aarch64 in the table of instruction sets. Every aarch64 processor has NEON.
#include "render/isa.h"

#if defined(__aarch64__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "render/a64/assembler.h"
#include "render/a64/machine_neon.h"

namespace naru::render {
namespace {

Machine make(asmjit::CodeHolder& holder) {
  auto compiler = std::make_unique<a64::Compiler>(&holder);
  auto assembler = std::make_unique<A64Assembler>(*compiler);
  Machine m;
  m.lanes = std::make_unique<MachineNeon>(*compiler, *assembler);
  m.assembler = std::move(assembler);
  m.compiler = std::move(compiler);
  return m;
}

// Other processors may have fetched, ahead of time, what stood there before: each must start fetching anew, which asmjit's clearing of caches
// makes only this one do. (Kernels without the call, before Linux 4.16, leave it to the next interrupt.)
void written() noexcept {
  const auto barrier = [](int what) { return syscall(SYS_membarrier, what, 0, 0) == 0; };
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)) return;
  if (barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)) barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
}

}  // namespace

std::span<const InstructionSet> a64_instruction_sets() noexcept {
  static constexpr InstructionSet kSets[] = {{"neon", []() noexcept { return true; }, make, written}};
  return kSets;
}

}  // namespace naru::render

#else

namespace naru::render {
std::span<const InstructionSet> a64_instruction_sets() noexcept { return {}; }
}  // namespace naru::render

#endif
