// The table of instruction sets: what an architecture's folder gives.
#pragma once

#include <memory>
#include <span>

#include "render/lane_machine.h"
#include "render/native.h"

namespace naru::render {

// All that emits a function's code. The compiler stays attached to `holder`, which outlives it.
struct Machine {
  std::unique_ptr<asmjit::BaseCompiler> compiler;
  std::unique_ptr<Assembler> assembler;
  std::unique_ptr<LaneMachine> lanes;
};

struct InstructionSet {
  const char* name;  // as in NARU_ISA
  // By this processor. A set is only used where it has those before it, too.
  bool (*supported)() noexcept;
  Machine (*make)(asmjit::CodeHolder& holder);
};

// The sets that there is code for; empty where the process runs on another architecture. In the architectures' folders, better ones last.
std::span<const InstructionSet> x86_instruction_sets() noexcept;
std::span<const InstructionSet> a64_instruction_sets() noexcept;

// Not of None.
const InstructionSet& instruction_set(Isa isa) noexcept;

// What best_isa() says on a processor that has `have`, given the values of NARU_JIT and NARU_ISA (nullptr where unset).
Isa choose_isa(Isa have, const char* jit, const char* wanted) noexcept;

}  // namespace naru::render
