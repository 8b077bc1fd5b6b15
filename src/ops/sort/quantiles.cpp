// median, quantile, kthvalue, and the variants that ignore NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/host_loop.h"
#include "ops/reduce/reductions.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

// True if the host can look at once, and no sorted row ends with NaN.
bool host_sees_numbers(const Tensor& t, const Tensor& sorted, int64_t dim) {
  if (wrap_dim(dim, t.dim()) != t.dim() - 1 || !sorted.is_contiguous() || !ops::can_use_host_loop({&t})) return false;
  const int64_t n = t.size(dim), all = t.numel();
  const auto numbers = [&]<class T>(const T* x) {
    bool seen = false;
    for (int64_t i = n - 1; i < all; i += n) seen |= x[i] != x[i];
    return !seen;
  };
  if (t.dtype() == DType::F32) return numbers(static_cast<const float*>(sorted.data_ptr()));
  return t.dtype() == DType::F64 && numbers(static_cast<const double*>(sorted.data_ptr()));
}

// The lower medians and their indices, with size 1 along `dim`.
std::pair<Tensor, Tensor> median_along(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0) throw IndexError("median(): Expected reduction dim {} to have non-zero size.", wrap_dim(dim, t.dim()));
  const auto [values, places] = sort(t, dim);
  const int64_t middle = (t.size(dim) - 1) / 2;
  if (!is_floating(t.dtype()) || host_sees_numbers(t, values, dim)) return {values.narrow(dim, middle, 1), places.narrow(dim, middle, 1)};
  // The sort puts NaNs last: if there is one, take the first of them.
  const Tensor numbers = sum(logical_not(isnan(t)), Dims{dim}, true);
  const Tensor at = where(numbers < Operand(t.size(dim)), numbers, Operand(middle));
  return {gather(values, dim, at), gather(places, dim, at)};
}

// The weight of the upper neighbor for a fractional position, by interpolation mode.
double share_of(double fraction, double place, std::string_view interpolation) {
  if (interpolation == "linear") return fraction;
  if (interpolation == "lower") return 0;
  if (interpolation == "higher") return fraction > 0 ? 1 : 0;
  if (interpolation == "midpoint") return fraction > 0 ? 0.5 : 0;
  if (interpolation == "nearest") return std::nearbyint(place) - std::floor(place);
  throw RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", interpolation);
}

Tensor quantiles(const Tensor& t, const Tensor& q, std::optional<int64_t> given, bool keepdim, std::string_view interpolation) {
  const auto entries = [&]() -> std::optional<Tensor> {
    if (!is_batched(t) || q.dim() > 1) return {};
    if (q.dim() > 0 && !given && keepdim) throw batching::NoBatchingRule("quantile(keepdim=True) of several numbers");
    const bool flattened = !given || t.dim() == 0;
    const Tensor x = flattened ? t.reshape({-1}) : t;
    const batching::Batch b{&x};
    const int64_t dim = batching::behind_batch(given.value_or(0), x.dim());
    const Tensor found = quantiles(b.opened(x), q, dim, keepdim && !flattened, interpolation);
    const Tensor y = b.entry(q.dim() > 0 ? found.movedim(0, 1) : found);
    return keepdim && !given ? y.reshape(Dims(static_cast<size_t>(t.dim()), 1)) : y;
  };
  if (auto y = ops::wrapped("quantile", quantiles, t, q, given, keepdim, interpolation, ops::BatchRule{entries})) return *std::move(y);
  if (!is_floating(t.dtype()) || t.element_size() == 2)
    throw RuntimeError("quantile() input tensor must be either float or double dtype, got {}", name_of(t.dtype()));
  if (q.dim() > 1) throw RuntimeError("quantile() q must be a scalar or 1D tensor");
  const bool flattened = !given || t.dim() == 0;
  const Tensor x = flattened ? t.reshape({-1}) : t;
  const int64_t dim = wrap_dim(given.value_or(0), x.dim()), n = x.size(dim);
  if (t.numel() == 0) throw RuntimeError("quantile() input tensor must be non-empty");
  std::vector<int64_t> below, above;
  std::vector<double> shares;
  for (const double share : q.device().is_meta() ? std::vector<double>(static_cast<size_t>(q.numel())) : q.to_doubles()) {
    if (!(share >= 0 && share <= 1)) throw RuntimeError("quantile() q values must be in the range [0, 1], got {}", share);
    const double place = share * static_cast<double>(n - 1);
    below.push_back(static_cast<int64_t>(std::floor(place)));
    above.push_back(std::min(below.back() + 1, n - 1));
    shares.push_back(share_of(place - static_cast<double>(below.back()), place, interpolation));
  }
  const auto count = static_cast<int64_t>(shares.size());
  const auto at = [&](const auto& values, DType dtype) { return tensor(values, Options(dtype, t.device())); };
  Dims along(static_cast<size_t>(x.dim()), 1);
  if (x.dim() > 0) along[static_cast<size_t>(dim)] = count;
  Tensor weights = at(shares, t.dtype());
  if (interpolation == "linear" && q.requires_grad() && grad_enabled())
    weights = q.reshape({-1}).to(t.dtype()) * static_cast<double>(n - 1) - at(below, t.dtype());
  const Tensor sorted = sort(x, dim).first;
  const Tensor last = sorted.narrow(dim, n - 1, 1);  // NaN if any element is NaN
  const Tensor from = index_select(sorted, dim, at(below, DType::I64)), share = weights.reshape(along);
  const Tensor between = ops::between(from, index_select(sorted, dim, at(above, DType::I64)), share);
  Tensor value = where(isnan(last), last, between).unsqueeze(0).transpose(0, dim + 1);  // quantiles first, and size 1 along dim
  if (flattened && keepdim) {
    Dims shape(static_cast<size_t>(t.dim()) + 1, 1);
    shape[0] = count;
    value = value.reshape(shape);
  } else if (!keepdim) {
    value = value.squeeze(dim + 1);
  }
  return q.dim() == 0 ? value.select(0, 0) : value;
}

}  // namespace

// Like lerp, but b - a is used only where both are finite: infinities give no NaN.
Tensor ops::between(const Tensor& a, const Tensor& b, const Tensor& share) {
  Tensor value;
  {
    const NoGrad off;
    const Tensor from = a.detach(), to = b.detach(), part = share.detach();
    const Tensor infinite = logical_or(isinf(from), isinf(to));
    value = where(logical_or(eq(part, 0.0), eq(from, to)), from, where(infinite, from + to, lerp(from, to, part)));
  }
  return autograd::record(
      value, "LerpBackward1", {&a, &b, &share}, {&a, &b, &share},
      [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved, autograd::Needed needed) -> std::vector<Tensor> {
        const Tensor& part = saved[2];
        return {needed[0] ? g[0] * (1.0 - part) : Tensor(), needed[1] ? g[0] * part : Tensor(),
                needed[2] ? ops::sum_to(g[0] * (saved[1] - saved[0]), part.sizes()) : Tensor()};
      });
}

// NaN, or the least integer (0 for other integer types), with a history.
Tensor ops::median_of_none(const Tensor& t) {
  const DType type = t.dtype();
  const Scalar value = is_floating(type) ? Scalar(NAN)
                       : type == DType::I32 || type == DType::I64
                           ? Scalar(std::numeric_limits<int64_t>::min() >> (63 - traits_of(type).digits))
                           : Scalar(0);
  return ops::record_choice(full({}, value, Options(type, t.device())), t, "MedianBackward0");
}

Tensor median(const Tensor& t) {
  if (auto y = ops::by_rules(t, ops::BatchRule{[&] { return median(t.reshape({-1}), 0).first; }})) return *std::move(y);
  ops::refuse_bool(t.dtype(), "median_cpu");
  const Tensor flat = t.detach().reshape({-1});
  if (flat.numel() == 0) return ops::median_of_none(t);
  return ops::record_choice(median_along(flat, 0).first.select(0, 0).clone(), t, "MedianBackward0");
}

std::pair<Tensor, Tensor> median(const Tensor& t, int64_t dim, bool keepdim) {
  ops::refuse_bool(t.dtype(), "median_out");
  if (t.dim() == 0) return sort(t, dim);
  const auto [values, places] = median_along(t, dim);
  if (keepdim) return {values, places};
  return {values.squeeze(dim), places.squeeze(dim)};
}

void ops::require_quantile_type(const Tensor& t, const Operand& q) {
  if (q.is_tensor() && (t.dtype() == DType::F32 || t.dtype() == DType::F64) && q.tensor().dtype() != t.dtype())
    throw RuntimeError("quantile() q tensor must be same dtype as the input tensor (got {} and {}; q.to(input.dtype) fixes it)",
                       name_of(q.tensor().dtype()), name_of(t.dtype()));
}

Tensor quantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  ops::require_quantile_type(t, q);
  return quantiles(t, q.is_tensor() ? q.tensor() : scalar_tensor(q.scalar(), DType::F64), dim, keepdim, interpolation);
}

std::pair<Tensor, Tensor> kthvalue(const Tensor& t, int64_t k, int64_t dim, bool keepdim) {
  ops::refuse_bool(t.dtype(), "kthvalue_cpu");
  const auto [values, places] = sort(t, dim);
  if (t.dim() == 0 && k == 1) return {values, places};
  if (t.dim() == 0 || k < 1 || k > t.size(dim))
    throw RuntimeError("kthvalue(): selected number k out of range for dimension {}: {}", dim, k);
  const Tensor v = values.select(dim, k - 1).contiguous(), p = places.select(dim, k - 1).contiguous();
  return keepdim ? std::pair{v.unsqueeze(dim), p.unsqueeze(dim)} : std::pair{v, p};
}

namespace {

// The number of elements that are not NaN along a dimension, with size 1 there.
Tensor numbers_along(const Tensor& t, int64_t dim) { return sum(logical_not(isnan(t)), Dims{dim}, true); }

std::pair<Tensor, Tensor> nanmedian_along(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0) throw IndexError("median(): Expected reduction dim {} to have non-zero size.", wrap_dim(dim, t.dim()));
  const auto [values, places] = sort(t, dim);
  // The sort puts NaNs last.
  const Tensor middle = is_floating(t.dtype()) ? clamp_min(floor_divide(sub(numbers_along(t, dim), Operand(1)), Operand(2)), Operand(0))
                                               : full_like(places.narrow(dim, 0, 1), Scalar((t.size(dim) - 1) / 2));
  return {gather(values, dim, middle), gather(places, dim, middle)};
}

// The weight of the upper neighbor for fractional positions, by interpolation mode.
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
  if (auto y = ops::wrapped("nanquantile", nanquantiles, t, q, given, keepdim, interpolation)) return *std::move(y);
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

Tensor nanmedian(const Tensor& t) {
  if (auto y = ops::by_rules(t, ops::BatchRule{[&] { return nanmedian(t.reshape({-1}), 0).first; }})) return *std::move(y);
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

Tensor nanquantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  ops::require_defined(t, "nanquantile", "input");
  ops::require_quantile_type(t, q);
  return nanquantiles(t, q, dim, keepdim, interpolation);
}

}  // namespace naru
