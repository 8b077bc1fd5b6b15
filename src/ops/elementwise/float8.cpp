#include "ops/elementwise/float8.h"

#include <algorithm>
#include <array>

#include "ir/special_ids.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/unsigned.h"

namespace naru::ops {
namespace {

namespace o = ir::op;

ir::OpId of_format(ir::OpId first, DType type) { return static_cast<ir::OpId>(first + static_cast<ir::OpId>(float8_number(type))); }

// The codes of x in `type`, as uint8.
Tensor codes_of(const Tensor& x, DType type) {
  if (x.dtype() == type) return as_stored(x);
  const Tensor number = as_float32(x).to(DType::F32);
  return apply(of_format(o::encode_float8, type), {{&number, {}, DType::F32}}, DType::U8, "to");
}
Tensor codes_of(const Scalar& number, DType type) {
  return codes_of(full({}, number.to_double(), Options(DType::F32, Device(DeviceType::Cpu))), type);
}

}  // namespace

Tensor as_float32(const Tensor& t) {
  if (!is_float8(t.dtype())) return t;
  const NoGrad off;
  const Tensor codes = as_stored(t);
  return apply(of_format(o::decode_float8, t.dtype()), {{&codes, {}, DType::U8}}, DType::F32, "to");
}

void apply_float8(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  if (out.numel() == 0) return;
  const NoGrad off;
  const ForceFusion fuse;
  const auto computed = std::ranges::find_if(operands, [](const OpOperand& x) { return is_float8(x.as); });
  const DType type = computed != operands.end() ? computed->as : out.dtype();
  const operators::Float8 way = record_of(id).float8;
  if (computed != operands.end() && way == operators::Float8::Refused) refuse(ir::op_table()[id].name, type);
  const bool bits = way == operators::Float8::SameBits && out.dtype() == type && is_float8(type);
  if (!bits && is_float8(out.dtype())) {
    if (computed == operands.end()) refuse(ir::op_table()[id].name, out.dtype());
    // Compute in float32, or in the operands' own types, and round once.
    const Tensor value = make_result(out.sizes(), DType::F32, out.device(), ir::op_table()[id].name, true);
    apply_into(id, operands, value);
    const OpOperand from{&value, {}, out.dtype()};
    return apply_float8(o::copy, {&from, 1}, out);
  }
  std::array<OpOperand, ir::kMaxArgs> seen;
  std::array<Tensor, ir::kMaxArgs> held;
  for (size_t i = 0; i < operands.size(); ++i) {
    OpOperand& x = seen[i] = operands[i];
    const bool own = is_float8(x.as);
    if (bits && (own || (id == o::copy && is_float8(type)))) {
      held[i] = x.tensor ? codes_of(*x.tensor, type) : codes_of(x.scalar, type);
      x = {&held[i], {}, DType::U8};
    } else if (x.tensor && is_float8(x.tensor->dtype())) {
      held[i] = as_float32(*x.tensor);
      x.tensor = &held[i];
    } else if (!x.tensor && own) {
      x.scalar = read_scalar(as_elements(codes_of(x.scalar, type), type));  // numbers are rounded to the type first
    }
    if (own && !bits) x.as = DType::F32;
  }
  apply_into(id, {seen.data(), operands.size()}, bits ? as_stored(out) : out);
}

}  // namespace naru::ops
