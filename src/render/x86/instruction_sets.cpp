// The x86-64 rows of the table of instruction sets.
#include "render/isa.h"

#if defined(__x86_64__)
#include "render/x86/assembler.h"
#include "render/x86/machine_avx2.h"
#include "render/x86/machine_avx512.h"

namespace naru::render {
namespace {

bool has_avx2() noexcept {
  const asmjit::CpuFeatures::X86& has = asmjit::CpuInfo::host().features().x86();
  return has.hasAVX2() && has.hasFMA() && has.hasF16C() && has.hasBMI2();
}

bool has_avx512() noexcept {
  const asmjit::CpuFeatures::X86& has = asmjit::CpuInfo::host().features().x86();
  return has.hasAVX512_F() && has.hasAVX512_BW() && has.hasAVX512_DQ() && has.hasAVX512_VL();
}

template <class Lanes>
Machine make(asmjit::CodeHolder& holder) {
  auto compiler = std::make_unique<x86::Compiler>(&holder);
  Machine m;
  m.assembler = std::make_unique<X86Assembler>(*compiler, std::is_same_v<Lanes, MachineAvx512>);
  m.lanes = std::make_unique<Lanes>(*compiler);
  m.compiler = std::move(compiler);
  return m;
}

}  // namespace

std::span<const InstructionSet> x86_instruction_sets() noexcept {
  static constexpr InstructionSet kSets[] = {{"avx2", has_avx2, make<MachineAvx2>}, {"avx512", has_avx512, make<MachineAvx512>}};
  return kSets;
}

}  // namespace naru::render

#else

namespace naru::render {
std::span<const InstructionSet> x86_instruction_sets() noexcept { return {}; }
}  // namespace naru::render

#endif
