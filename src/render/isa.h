// The table of instruction sets, which the architectures' folders provide.
#pragma once

#include <memory>
#include <span>

#include "render/lane_machine.h"
#include "render/native.h"

namespace naru::render {

// Everything that emits a function's code. The compiler is attached to `holder`, which must outlive it.
struct Machine {
  std::unique_ptr<asmjit::BaseCompiler> compiler;
  std::unique_ptr<Assembler> assembler;
  std::unique_ptr<LaneMachine> lanes;
};

struct InstructionSet {
  const char* name;  // as in NARU_ISA
  // True if this processor has it. A set is used only if those before it are supported, too.
  bool (*supported)() noexcept;
  Machine (*make)(asmjit::CodeHolder& holder);
};

// The sets with a code generator, best last; empty if the process runs on another architecture. Defined in the architectures' folders.
std::span<const InstructionSet> x86_instruction_sets() noexcept;
std::span<const InstructionSet> a64_instruction_sets() noexcept;

// `isa` must not be None.
const InstructionSet& instruction_set(Isa isa) noexcept;

// The result of best_isa() on a processor that supports `have`, given the values of NARU_JIT and NARU_ISA (nullptr if unset).
Isa choose_isa(Isa have, const char* jit, const char* wanted) noexcept;

}  // namespace naru::render
