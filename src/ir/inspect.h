// Queries about an instruction (ir/instruction.h) that do not depend on its kind.
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

// Calls f(void*& address, const OperandUse&) for each operand with a non-null address; f may replace the address.
template <class F>
void each_operand(Instruction& instruction, F&& f) {
  std::visit([&](auto& i) { i.each_operand(f); }, instruction);
}
// The same, read-only.
template <class F>
void each_operand(const Instruction& instruction, F&& f) {
  each_operand(const_cast<Instruction&>(instruction), [&](void*& p, const OperandUse& use) { f(static_cast<const void*>(p), use); });
}

// Calls f(program, params) for each program of the instruction (of any kind, or a variant of kinds): a Program and a std::vector<uint64_t>, const
// if the instruction is const.
template <class I, class F>
void each_program(I& instruction, F&& f) {
  if constexpr (requires { std::variant_size<std::remove_const_t<I>>::value; })
    std::visit([&](auto& i) { each_program(i, f); }, instruction);
  else if constexpr (MadeOfParts<I>)
    for (auto& part : instruction.parts) each_program(part.work, f);
  else if constexpr (ComputesByProgram<I>)
    f(instruction.program, instruction.params);
}

// The operators that an instruction carries out, by their user-visible names: "add" and "exp" for a fused map, "sum", "argmax", "cumsum", "sort",
// "matmul", "gather" ...; none for a plain copy of bytes.
void each_name(const Instruction& instruction, const std::function<void(const char*)>& f);

// Every name that each_name can give, once each, except "kernel" (user kernels) and "exchange": first the rows of the elementwise table, then their derivatives
// ("exp'a": with respect to the first operand), then the names that kinds of instructions give.
struct OperatorName {
  const char* name;
  const char* family;  // "elementwise", "derivative", "internal", "reduction", "scan", "index", "sort" or "product"
};
std::vector<OperatorName> operator_names();
// The names of instructions that only hosts carry out.
std::vector<const char*> host_only_names();

}  // namespace naru::ir
