#include "ops/rules.h"

#include <algorithm>

namespace naru::ops {

DType result_type(std::span<const Operand> operands) {
  // Tensors with dimensions decide; tensors without, then numbers, only where they are of a higher category.
  DType best[3] = {DType::Bool, DType::Bool, DType::Bool};
  bool seen[3] = {};
  for (const Operand& o : operands) {
    const int level = !o.is_tensor() ? 2 : o.tensor().dim() == 0 ? 1 : 0;
    const DType t = o.is_tensor() ? o.tensor().dtype() : o.scalar().dtype();
    best[level] = seen[level] ? promote(best[level], t) : t;
    seen[level] = true;
  }
  DType type = DType::Bool;
  bool any = false;
  for (int level = 0; level < 3; ++level) {
    if (!seen[level]) continue;
    if (!any || category_of(best[level]) > category_of(type))
      type = any ? (level == 2 ? best[level] : promote(type, best[level])) : best[level];
    any = true;
  }
  return type;
}

const char* name_of(Rule rule) noexcept {
  constexpr const char* kNames[] = {"Arith",   "ArithNoBool", "Float", "Power", "Rounding", "Compare",
                                    "Logical", "Predicate",   "Bits",  "Shift", "Where"};
  return kNames[static_cast<int>(rule)];
}

namespace {

// In PyTorch's words, which tell what to write instead.
void refuse_bool(std::span<const Operand> operands, std::string_view op) {
  size_t bools = 0;
  for (const Operand& o : operands) bools += (o.is_tensor() ? o.tensor().dtype() : o.scalar().dtype()) == DType::Bool;
  if (bools == 0) return;
  constexpr const char* kMask = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.";
  if (op == "sub" && bools == 2 && operands[0].is_tensor() && operands[1].is_tensor())
    throw NotImplementedError(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
  if (op == "sub") throw NotImplementedError("Subtraction, the `-` operator, with a bool tensor is not supported. {}", kMask);
  if (op == "neg") throw NotImplementedError("Negation, the `-` operator, on a bool tensor is not supported. {}", kMask);
}

}  // namespace

Types apply_rule(Rule rule, std::span<const Operand> operands, const char* op) {
  if (rule == Rule::Where) {
    const DType t = result_type(operands.subspan(1));
    if (operands[0].is_tensor() && operands[0].tensor().dtype() != DType::Bool)
      throw RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype {}; write condition != 0",
                         name_of(operands[0].tensor().dtype()));
    return {t, t};
  }
  const DType t = result_type(operands);
  switch (rule) {
    case Rule::ArithNoBool:
      refuse_bool(operands, op);
      if (t == DType::Bool)
        throw NotImplementedError("{}: not defined for bool tensors; wanted numbers. For bool use ~, ^ or logical_xor()", op);
      return {t, t};
    case Rule::Rounding:
      if (t == DType::Bool) throw NotImplementedError("\"{}\" not implemented for 'Bool': wanted numbers", op);
      return {t, t};
    case Rule::Float: {
      const DType f = is_inexact(t) ? t : default_dtype();
      return {f, f};
    }
    case Rule::Power:
      if (operands.size() > 1 && !is_inexact(t) && !operands[1].is_tensor() && operands[1].scalar().to_int() < 0)
        throw RuntimeError("Integers to negative integer powers are not allowed. (pow: exponent {})", operands[1].scalar().to_int());
      return {t == DType::Bool ? DType::I64 : t, t == DType::Bool ? DType::I64 : t};
    case Rule::Compare:
    case Rule::Predicate:
      return {t, DType::Bool};
    case Rule::Logical:
      return {DType::Bool, DType::Bool};
    case Rule::Bits:
    case Rule::Shift:
      if (is_inexact(t))
        throw NotImplementedError("\"{}\" not implemented for '{}': wanted integers{}", op, name_of(t),
                                  rule == Rule::Bits ? " or bool" : "");
      return {t, t};
    default:
      return {t, t};
  }
}

}  // namespace naru::ops
