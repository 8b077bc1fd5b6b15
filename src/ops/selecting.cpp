// Places among sorted elements without NaN, elements written by place, floating-point numbers taken apart.
#include "naru/selecting.h"

#include <cmath>

#include "ir/special_ids.h"
#include "naru/ops.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/history.h"
#include "ops/reductions.h"
#include "ops/type_names.h"

namespace naru {
namespace {

using Tensors = std::vector<Tensor>;

// How many elements along a dimension are numbers, (..., 1, ...).
Tensor numbers_along(const Tensor& t, int64_t dim) { return sum(logical_not(isnan(t)), Dims{dim}, true); }

std::pair<Tensor, Tensor> nanmedian_along(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0) throw IndexError("median(): Expected reduction dim {} to have non-zero size.", wrap_dim(dim, t.dim()));
  const auto [values, places] = sort(t, dim);
  // NaN comes last.
  const Tensor middle = is_floating(t.dtype()) ? clamp_min(floor_divide(sub(numbers_along(t, dim), Operand(1)), Operand(2)), Operand(0))
                                               : full_like(places.narrow(dim, 0, 1), Scalar((t.size(dim) - 1) / 2));
  return {gather(values, dim, middle), gather(places, dim, middle)};
}

}  // namespace

Tensor nanmedian(const Tensor& t) {
  ops::refuse_bool(t.dtype(), "median_cpu");
  const Tensor flat = t.detach().reshape({-1});
  if (flat.numel() == 0) return ops::median_of_none(t);
  return ops::record_choice(nanmedian_along(flat, 0).first.select(0, 0).clone(), t, "NanmedianBackward0");
}

std::pair<Tensor, Tensor> nanmedian(const Tensor& t, int64_t dim, bool keepdim) {
  ops::refuse_bool(t.dtype(), "median_out");
  if (t.dim() == 0) return sort(t, dim);
  const auto [values, places] = nanmedian_along(t, dim);
  if (keepdim) return {values, places};
  return {values.squeeze(dim), places.squeeze(dim)};
}

namespace {

// Between the elements below and above a place: how far to the second.
Tensor share_of(const Tensor& place, std::string_view interpolation) {
  const Tensor fraction = place - floor(place);
  if (interpolation == "linear") return fraction;
  if (interpolation == "lower") return zeros_like(place);
  if (interpolation == "higher") return gt(fraction, 0.0).to(place.dtype());
  if (interpolation == "midpoint") return gt(fraction, 0.0).to(place.dtype()) * 0.5;
  if (interpolation == "nearest") return round(place) - floor(place);
  throw RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", interpolation);
}

Tensor nanquantiles(const Tensor& t, const Operand& q, std::optional<int64_t> given, bool keepdim, std::string_view interpolation) {
  if (const autocast::Casts c("nanquantile", {&t}); c) return nanquantiles(c[0], q, given, keepdim, interpolation);
  if (t.dtype() != DType::F32 && t.dtype() != DType::F64)
    throw RuntimeError("quantile() input tensor must be either float or double dtype, got {}", name_of(t.dtype()));
  if (q.is_tensor() && q.tensor().dim() > 1) throw RuntimeError("quantile() q must be a scalar or 1D tensor");
  if (t.numel() == 0) throw RuntimeError("quantile() input tensor must be non-empty");
  const std::vector<double> list = q.is_tensor() ? q.tensor().to_doubles() : std::vector<double>{q.scalar().to_double()};
  for (const double share : list)
    if (!(share >= 0 && share <= 1)) throw RuntimeError("quantile() q must be in the range [0, 1] but got {}", share);
  const bool flattened = !given || t.dim() == 0;
  const Tensor x = flattened ? t.reshape({-1}) : t;
  const int64_t dim = wrap_dim(given.value_or(0), x.dim());
  const Tensor last = x.movedim(dim, -1), sorted = sort(last, -1).first;
  const Tensor most = clamp_min(sub(numbers_along(last, -1), Operand(1)), Operand(0)).to(DType::F64);
  const Options like(DType::F64, t.device());
  const Tensor shares = q.is_tensor() ? q.tensor().reshape({-1}).to(t.device()).to(DType::F64) : full({1}, q.scalar(), like);
  const Tensor place = most * shares;  // (..., q)
  const Tensor below = floor(place).to(DType::I64);
  const Tensor above = minimum(below + 1, most.to(DType::I64));
  Tensor value = ops::between(gather(sorted, -1, below), gather(sorted, -1, above), share_of(place, interpolation).to(t.dtype()));
  value = value.movedim(-1, 0);
  if (keepdim) {
    if (flattened) {
      Dims shape(static_cast<size_t>(t.dim()) + 1, 1);
      shape[0] = shares.size(0);
      value = value.reshape(shape);
    } else {
      value = value.unsqueeze(dim + 1);
    }
  }
  return !q.is_tensor() || q.tensor().dim() == 0 ? value.select(0, 0) : value;
}

}  // namespace

Tensor nanquantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  ops::require_defined(t, "nanquantile", "input");
  ops::require_quantile_type(t, q);
  return nanquantiles(t, q, dim, keepdim, interpolation);
}

Tensor put(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  ops::require_defined(t, "put_", "self"), ops::require_defined(index, "put_", "index"), ops::require_defined(source, "put_", "source");
  if (index.dtype() != DType::I64)
    throw RuntimeError("put_(): Expected a long tensor for index, but got {}", ops::torch_name(index.dtype()));
  if (t.dtype() != source.dtype())
    throw RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
                       ops::torch_name(t.dtype()), ops::torch_name(source.dtype()));
  if (source.numel() != index.numel())
    throw IndexError(
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
        source.numel(), index.numel());
  if (t.numel() == 0 && index.numel() != 0) throw IndexError("put_(): Expected self to be non-empty, or index and source to be empty");
  const Index at[] = {Index(index.reshape({-1}))};
  return index_put(t.reshape({-1}), at, source.reshape({-1}), accumulate).reshape(t.sizes());
}

void put_(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor(t).copy_(put(t, index, source, accumulate));
}

Tensor masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source) {
  ops::require_defined(t, "masked_scatter", "self"), ops::require_defined(mask, "masked_scatter", "mask");
  if (mask.dtype() != DType::Bool)
    throw RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype {}", ops::torch_name(mask.dtype()));
  const Dims shape = broadcast_shapes(t.sizes(), mask.sizes());
  const Tensor out = t.expand(shape).clone(MemoryFormat::Contiguous);
  masked_scatter_(out, mask.expand(shape), source);
  return out;
}

namespace {

// The integers that hold a floating type's bits.
DType bits_type(DType t) { return t == DType::F64 ? DType::I64 : t == DType::F32 ? DType::I32 : DType::I16; }

// The kernel's next_after for 16-bit types, which kernels widen.
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
    // Denormals are scaled up first.
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

}  // namespace naru
