// What an instruction says of itself (ir/instruction.h), asked for without knowing its kind.
#pragma once

#include <functional>
#include <vector>

#include "ir/instruction.h"

namespace naru::ir {

template <class I>
concept ComputesByProgram = requires(I& i) {
  i.program;
  i.params;
};
template <class I>
concept MadeOfParts = requires(I& i) {
  i.parts;
};

template <class I>
concept HostOnly = requires {
  std::remove_const_t<I>::kHostOnly;
};
inline bool is_host_only(const Instruction& instruction) {
  return std::visit([]<class I>(const I&) { return HostOnly<I>; }, instruction);
}

// Calls f(void*& address, const OperandUse&) for each operand; addresses may be replaced. Null ones are left out.
template <class F>
void each_operand(Instruction& instruction, F&& f) {
  std::visit([&](auto& i) { i.each_operand(f); }, instruction);
}
// The same, to look only.
template <class F>
void each_operand(const Instruction& instruction, F&& f) {
  each_operand(const_cast<Instruction&>(instruction), [&](void*& p, const OperandUse& use) { f(static_cast<const void*>(p), use); });
}

// Calls f(program, params) for each program that computes what the instruction asks for: Program and std::vector<uint64_t>, const where the
// instruction (of any kind, or a variant of kinds) is.
template <class I, class F>
void each_program(I& instruction, F&& f) {
  if constexpr (requires { std::variant_size<std::remove_const_t<I>>::value; })
    std::visit([&](auto& i) { each_program(i, f); }, instruction);
  else if constexpr (MadeOfParts<I>)
    for (auto& part : instruction.parts) each_program(part.work, f);
  else if constexpr (ComputesByProgram<I>)
    f(instruction.program, instruction.params);
}

// The operators an instruction carries out, by the names users know: "add" and "exp" for a fused map, "sum", "argmax", "cumsum", "sort",
// "matmul", "gather" ...; none for a plain copy of bytes.
void each_name(const Instruction& instruction, const std::function<void(const char*)>& f);

// Every name that each_name can give, but for "kernel", which is the user's own, each once: first the rows of the elementwise table, then their
// derivatives ("exp'a": by the first operand), then those that kinds of instructions give.
struct OperatorName {
  const char* name;
  const char* family;  // "elementwise", "derivative", "internal", "reduction", "scan", "index", "sort" or "product"
};
std::vector<OperatorName> operator_names();
// Those of instructions that only hosts carry out.
std::vector<const char*> host_only_names();

}  // namespace naru::ir
