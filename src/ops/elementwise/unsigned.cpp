#include "ops/elementwise/unsigned.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/sparse/sparse.h"

namespace naru::ops {
namespace {

namespace o = ir::op;
using operators::WideUnsigned;

constexpr int64_t kSignBit = std::numeric_limits<int64_t>::min();

Tensor seen_as(const Tensor& t, DType type) {
  refuse_parts(t, "view");
  Tensor v(new TensorImpl(t.impl()->storage, type));
  v.impl()->set_geometry(t.sizes(), t.strides(), t.storage_offset());
  v.impl()->origin = t.impl()->origin;
  return v;
}

// uint64 as floating point, rounded once. Values beyond int64 are halved (the last bit is kept as a sticky bit, for correct rounding), converted, and
// doubled.
Tensor uint64_as_floating(const Tensor& bits, DType type) {
  const Tensor half = bitwise_or(bitwise_and(bitwise_right_shift(bits, 1), std::numeric_limits<int64_t>::max()), bitwise_and(bits, 1));
  const DType wide = type == DType::F64 ? DType::F64 : DType::F32;
  return where(bits >= 0, bits.to(wide), half.to(wide) * 2.0).to(type);
}

// Converts a tensor of dtype uint16, uint32 or uint64 to a type that instructions support.
Tensor widened(const Tensor& t, DType type) {
  const Tensor bits = as_stored(t);
  if (type == DType::Bool) return bits != 0;
  if (is_integral(type) && size_of(type) <= size_of(t.dtype())) return bits.to(type);
  if (t.dtype() == kUInt64) return uint64_as_floating(bits, type);
  const DType own = t.dtype() == kUInt16 ? DType::I32 : DType::I64;
  const Tensor value = bitwise_and(bits.to(own), t.dtype() == kUInt16 ? int64_t{0xffff} : int64_t{0xffffffff});
  return value.to(type);
}

// Converts x, of any other dtype, to the signed form of `type`.
Tensor narrowed(const Tensor& x, DType type) {
  if (is_wide_unsigned(x.dtype())) return size_of(x.dtype()) >= size_of(type) ? as_stored(x) : widened(x, DType::I64);
  if (is_complex(x.dtype())) return narrowed(real_part(x).clone(), type);
  if (!is_floating(x.dtype())) return x;
  if (type != kUInt64) return x.to(type == kUInt16 ? DType::I32 : DType::I64);
  const Tensor wide = size_of(x.dtype()) == 2 ? x.to(DType::F32) : x;
  return where(wide >= 0x1p63, bitwise_xor((wide - 0x1p63).to(DType::I64), kSignBit), wide.to(DType::I64));
}

Scalar in_order(Scalar number, DType type) {
  return type == kUInt64 ? Scalar(static_cast<int64_t>(number.to_bits() ^ static_cast<uint64_t>(kSignBit))) : number;
}

using Operands = std::array<OpOperand, ir::kMaxArgs>;
using Held = std::array<Tensor, ir::kMaxArgs>;

void write(const Tensor& out, const Tensor& value) {
  const OpOperand from{&value, {}, out.dtype()};
  apply_into(o::copy, {&from, 1}, out);
}

// Computes over signed integers that have the order of the unsigned ones.
void apply_ordered(ir::OpId id, std::span<const OpOperand> operands, DType type, const Tensor& out) {
  Operands seen;
  Held held;
  size_t count = operands.size();
  const DType wide = type == kUInt16 ? DType::I32 : DType::I64;
  for (size_t i = 0; i < count; ++i) {
    seen[i] = {nullptr, operands[i].scalar, wide};
    if (operands[i].tensor) {
      held[i] = in_signed_order(operands[i].tensor->to(type));
      seen[i].tensor = &held[i];
    } else {
      seen[i].scalar = in_order(operands[i].scalar, type);
    }
  }
  if (id == o::relu6) id = o::clamp_max, seen[count++] = {nullptr, in_order(6, type), wide};
  const Tensor value = make_result(out.sizes(), wide, out.device(), "copy_", true);
  apply_into(id, {seen.data(), count}, value);
  write(out, as_elements(type == kUInt64 ? bitwise_xor(value, kSignBit) : value.to(storage_type(type)), type));
}

// The unsigned dtype that the operator computes in, if any.
std::optional<DType> computed_in(std::span<const OpOperand> operands) {
  for (const OpOperand& x : operands)
    if (is_wide_unsigned(x.as)) return x.as;
  return {};
}

}  // namespace

Tensor as_stored(const Tensor& t) { return has_storage_type(t.dtype()) ? seen_as(t, storage_type(t.dtype())) : t; }
Tensor as_elements(const Tensor& t, DType type) { return has_storage_type(type) ? seen_as(t, type) : t; }

Tensor in_signed_order(const Tensor& t) {
  if (!is_wide_unsigned(t.dtype())) return t;
  const NoGrad off;
  return t.dtype() == kUInt64 ? bitwise_xor(as_stored(t), kSignBit) : widened(t, t.dtype() == kUInt16 ? DType::I32 : DType::I64);
}

Tensor as_computed(const Tensor& t, DType type) {
  if (!is_wide_unsigned(t.dtype())) return t;
  const NoGrad off;
  return widened(t, is_floating(type) ? type : DType::I64);
}

Types unsigned_types(Rule rule, DType t, const char* op) {
  if (rule == Rule::Where) return {t, t};
  if (rule == Rule::Float) return {default_dtype(), default_dtype()};
  if (rule == Rule::Predicate) return {t, DType::Bool};
  const ir::OpId id = id_of(op);
  if (rule == Rule::Compare && (id == o::eq || id == o::ne)) return {t, DType::Bool};
  if (record_of(id).wide_unsigned == WideUnsigned::Refused) refuse(op, t);
  return {t, t};
}

void apply_unsigned(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  if (out.numel() == 0) return;
  const NoGrad off;
  const ForceFusion fuse;
  const char* const name = ir::op_table()[id].name;
  const std::optional<DType> type = computed_in(operands);
  const bool predicate = type && id < o::kTable && table()[id].rule == Rule::Predicate;
  const WideUnsigned way = record_of(id).wide_unsigned;
  if (type && way == WideUnsigned::Ordered) return apply_ordered(id, operands, *type, out);
  if (type && !predicate && way == WideUnsigned::Refused) refuse(name, *type);
  Operands seen;
  Held held;
  for (size_t i = 0; i < operands.size(); ++i) {
    OpOperand& x = seen[i] = operands[i];
    const bool own = is_wide_unsigned(x.as);
    if (x.tensor && (own || is_wide_unsigned(x.tensor->dtype()))) {
      // These integers include no special values, so a predicate only needs to see whether they are 0.
      held[i] = predicate ? as_stored(*x.tensor) != 0 : own ? narrowed(*x.tensor, x.as) : widened(*x.tensor, real_of(x.as));
      x.tensor = &held[i];
    } else if (own) {
      x.scalar = static_cast<int64_t>(x.scalar.to_bits());
    }
    if (own) x.as = predicate ? DType::I32 : storage_type(x.as);
  }
  const std::span<const OpOperand> all(seen.data(), operands.size());
  if (type && way == WideUnsigned::Unchanged) id = o::copy;
  if (type && (out.dtype() == *type || out.dtype() == DType::Bool)) return apply_into(id, all, as_stored(out));
  if (!type && !is_wide_unsigned(out.dtype())) return apply_into(id, all, out);
  // The compute type differs from the result's dtype: convert afterwards.
  const DType made = type ? storage_type(*type) : is_floating(all[0].as) ? all[0].as : DType::I64;
  const Tensor value = make_result(out.sizes(), made, out.device(), name, true);
  apply_into(id, all, value);
  write(out, as_elements(value, type.value_or(made)));
}

}  // namespace naru::ops
