// The aarch64 row of the table of instruction sets. Every aarch64 processor has NEON.
#include "render/isa.h"

#if defined(__aarch64__)
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

}  // namespace

std::span<const InstructionSet> a64_instruction_sets() noexcept {
  static constexpr InstructionSet kSets[] = {{"neon", []() noexcept { return true; }, make}};
  return kSets;
}

}  // namespace naru::render

#else

namespace naru::render {
std::span<const InstructionSet> a64_instruction_sets() noexcept { return {}; }
}  // namespace naru::render

#endif
