#include "ops/elementwise/rules.h"

#include <algorithm>

#include "core/operators.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/unsigned.h"
#include "ops/tensor/type_names.h"

namespace naru::ops {

DType result_type(std::span<const Operand> operands) {
  // Priority: tensors with dimensions, then 0-d tensors, then scalars; a lower level counts only if its category is higher.
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
    // A complex scalar or 0-d tensor with a floating-point tensor of a higher level: use the complex type of that tensor's width.
    if (any && is_floating(type) && is_complex(best[level]))
      type = complex_of(type);
    else if (!any || category_of(best[level]) > category_of(type))
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

// PyTorch's texts, which suggest the replacement.
void refuse_bool(std::span<const Operand> operands, std::string_view op) {
  size_t bools = 0;
  for (const Operand& o : operands) bools += (o.is_tensor() ? o.tensor().dtype() : o.scalar().dtype()) == DType::Bool;
  if (bools == 0) return;
  constexpr const char* kMask = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.";
  if (op == "sub" && bools == 2 && operands[0].is_tensor())
    throw NotImplementedError(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
  if (op == "sub") throw NotImplementedError("Subtraction, the `-` operator, with a bool tensor is not supported. {}", kMask);
  if (op == "neg") throw NotImplementedError("Negation, the `-` operator, on a bool tensor is not supported. {}", kMask);
}

// all: the promoted type of all operands.
void refuse_missing(DType all, DType first, std::string_view op) {
  const operators::Lacks& lacks = operators::record_of(op).lacks;
  const DType t = lacks.by_first ? first : all;
  if (lacks.types & (t == DType::Bool ? operators::kBool : is_inexact(t) ? operators::kFloats : operators::kIntegers))
    throw NotImplementedError("\"{}\" not implemented for '{}' ({}: convert to {} first)", lacks.kernel, torch_name(t), op,
                              lacks.types & operators::kFloats     ? "integers"
                              : lacks.types & operators::kIntegers ? "floating point"
                                                                   : "numbers");
  if (all == DType::Bool && op == "relu") throw NotImplementedError("Boolean inputs not supported for relu");
  if (all == DType::Bool && op == "relu6") throw NotImplementedError("Bool inputs not supported for hardtanh");
}

}  // namespace

Types apply_rule(Rule rule, std::span<const Operand> operands, const char* op) {
  if (rule == Rule::Where) {
    const DType t = result_type(operands.subspan(1));
    // PyTorch takes bytes as well, from the time before it had booleans.
    if (const DType c = operands[0].is_tensor() ? operands[0].tensor().dtype() : DType::Bool; c != DType::Bool && c != DType::U8)
      throw RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype {}; write condition != 0",
                         torch_name(c));
    return {t, t};
  }
  const DType t = result_type(operands);
  if (is_complex(t)) [[unlikely]]
    return complex_types(rule, t, op);
  const DType first = operands[0].is_tensor() ? operands[0].tensor().dtype() : t;
  if (!is_inexact(t) || !is_inexact(first) || rule == Rule::Bits || rule == Rule::Shift) refuse_missing(t, first, op);
  if (is_float8(t) && rule == Rule::Logical) [[unlikely]]
    refuse(op, t);
  if (is_wide_unsigned(t)) [[unlikely]]
    return unsigned_types(rule, t, op);
  switch (rule) {
    case Rule::ArithNoBool:
      refuse_bool(operands, op);
      if (t == DType::Bool)
        throw NotImplementedError("{}: not defined for bool tensors; wanted numbers. For bool use ~, ^ or logical_xor()", op);
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
    default:
      return {t, t};
  }
}

}  // namespace naru::ops
