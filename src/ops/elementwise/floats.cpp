// Floating-point numbers split and combined: frexp, ldexp, nextafter.
#include <cmath>

#include "autograd/history/history.h"
#include "ir/special_ids.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reductions.h"
#include "ops/tensor/common.h"

namespace naru {

using Tensors = std::vector<Tensor>;

namespace {

// The integer type that holds a floating-point type's bits.
DType bits_type(DType t) { return t == DType::F64 ? DType::I64 : t == DType::F32 ? DType::I32 : DType::I16; }

// nextafter for 16-bit types, on their bits: the kernel's next_after would see them widened to float32.
Tensor neighbour(const Tensor& given, const Tensor& towards, DType type) {
  const Dims shape = broadcast_shapes(given.sizes(), towards.sizes());
  const Tensor a = given.to(type).expand(shape).contiguous(), b = towards.to(type).expand(shape);
  const Tensor bits = a.view(bits_type(type));
  const Tensor away = eq(gt(b, a), gt(a, 0.0));
  const Tensor stepped = where(away, bits + 1, bits - 1).to(bits_type(type)).contiguous().view(type);
  const Tensor least = ones(shape, Options(bits_type(type), a.device())).view(type);
  const Tensor moved = where(eq(a, 0.0), copysign(least, b), stepped);
  return where(logical_or(isnan(a), isnan(b)), a + b, where(eq(a, b), b, moved));
}

}  // namespace

Tensor nextafter(const Tensor& given, const Tensor& towards) {
  ops::require_defined(given, "nextafter", "input"), ops::require_defined(towards, "nextafter", "other");
  const Tensor* const both[] = {&given, &towards};
  static constexpr const char* kRoles[] = {"input", "other"};
  ops::common_device(both, kRoles, "nextafter");
  const DType type = promote(given.dtype(), towards.dtype());
  if (!is_floating(type)) ops::throw_not_implemented("nextafter_cpu", type);
  Tensor value;
  {
    const NoGrad off;
    if (size_of(type) == 2) {
      value = neighbour(given, towards, type);
    } else {
      const Tensor a = given.detach(), b = towards.detach();
      value = ops::apply(ir::op::next_after, {{&a, {}, type}, {&b, {}, type}}, type, "nextafter");
    }
  }
  return autograd::record(
      value, "NextafterBackward0", {&given, &towards}, {&given, &towards}, [](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor &from = saved[0], &to = saved[1];
        return {ops::sum_to(masked_fill(g[0], eq(from, to), 0.0), from.sizes()), zeros(to.sizes(), Options(to.dtype(), g[0].device()))};
      });
}

std::pair<Tensor, Tensor> frexp(const Tensor& t) {
  ops::require_defined(t, "frexp", "input");
  if (!is_floating(t.dtype())) throw RuntimeError("torch.frexp() only supports floating-point dtypes");
  Tensor mantissa, exponent;
  {
    const NoGrad off;
    const bool wide = t.dtype() == DType::F64;
    const DType type = wide ? DType::F64 : DType::F32, integers = bits_type(type);
    const int64_t digits = wide ? 52 : 23, bias = wide ? 1022 : 126, field = wide ? 0x7ff : 0xff;
    const Tensor x = t.to(type).contiguous();
    // Scale denormals up first.
    const Tensor small = lt(abs(x), Operand(wide ? 0x1p-1022 : 0x1p-126));
    const Tensor bits = where(small, x * Operand(std::ldexp(1.0, static_cast<int>(digits) + 2)), x).contiguous().view(integers);
    const Tensor plain = logical_and(isfinite(x), ne(x, 0.0));
    const Tensor found = sub(bitwise_and(bitwise_right_shift(bits, Operand(digits)), Operand(field)),
                             where(small, Operand(bias + digits + 2), Operand(bias)));
    exponent = where(plain, found, Operand(0)).to(DType::I32);
    const int64_t kept = wide ? static_cast<int64_t>(0x800fffffffffffffu) : int64_t{static_cast<int32_t>(0x807fffffu)};
    const Tensor unit = bitwise_or(bitwise_and(bits, Operand(kept)), Operand(bias << digits)).to(integers).contiguous().view(type);
    mantissa = where(plain, unit, x).to(t.dtype());
  }
  mantissa = autograd::record(mantissa, "FrexpBackward0", {&t}, {&exponent},
                              [](const Tensors& g, const Tensors& saved) -> Tensors { return {g[0] / exp2(saved[0].to(g[0].dtype()))}; });
  return {mantissa, exponent};
}

// The result keeps t's floating-point dtype, whatever the exponent's integer dtype. Integer powers are applied in two halves, which are finite where
// 2^n would overflow.
Tensor ldexp(const Tensor& t, const Operand& exponent) {
  if (exponent.is_tensor() ? is_inexact(exponent.tensor().dtype()) : exponent.scalar().is_float()) return t * pow(Operand(2.0), exponent);
  const DType type = is_inexact(t.dtype()) ? t.dtype() : default_dtype();
  const Tensor n =
      exponent.is_tensor() ? exponent.tensor().to(DType::I64) : scalar_tensor(exponent.scalar(), Options(DType::I64, t.device()));
  const Tensor half = floor_divide(n, Operand(2));
  return t * pow(Operand(2.0), half.to(type)) * pow(Operand(2.0), (n - half).to(type));
}

}  // namespace naru
