// What rests on sorted elements: medians, quantiles, places among others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "naru/autograd.h"
#include "naru/compositions.h"
#include "naru/ops.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/history.h"
#include "ops/host_loop.h"
#include "ops/reductions.h"
#include "ops/type_names.h"

namespace naru {
namespace {

// The lower medians and their places, with a dimension of size 1.
std::pair<Tensor, Tensor> median_along(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0) throw IndexError("median(): Expected reduction dim {} to have non-zero size.", wrap_dim(dim, t.dim()));
  const auto [values, places] = sort(t, dim);
  const int64_t middle = (t.size(dim) - 1) / 2;
  if (!is_floating(t.dtype())) return {values.narrow(dim, middle, 1), places.narrow(dim, middle, 1)};
  // NaNs come last: the first of them, where there is one.
  const Tensor numbers = sum(logical_not(isnan(t)), Dims{dim}, true);
  const Tensor at = where(numbers < Operand(t.size(dim)), numbers, Operand(middle));
  return {gather(values, dim, at), gather(places, dim, at)};
}

// How far from the element below to the one above a place between them is taken to be.
double share_of(double fraction, double place, std::string_view interpolation) {
  if (interpolation == "linear") return fraction;
  if (interpolation == "lower") return 0;
  if (interpolation == "higher") return fraction > 0 ? 1 : 0;
  if (interpolation == "midpoint") return fraction > 0 ? 0.5 : 0;
  if (interpolation == "nearest") return std::nearbyint(place) - std::floor(place);
  throw RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", interpolation);
}

Tensor quantiles(const Tensor& t, const Tensor& q, std::optional<int64_t> given, bool keepdim, std::string_view interpolation) {
  if (const autocast::Casts c("quantile", {&t, &q}); c) return quantiles(c[0], c[1], given, keepdim, interpolation);
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
  const Tensor last = sorted.narrow(dim, n - 1, 1);  // NaN where one is NaN
  const Tensor from = index_select(sorted, dim, at(below, DType::I64)), share = weights.reshape(along);
  const Tensor between = ops::between(from, index_select(sorted, dim, at(above, DType::I64)), share);
  Tensor value = where(isnan(last), last, between).unsqueeze(0).transpose(0, dim + 1);  // shares first, and a dimension of size 1 at dim
  if (flattened && keepdim) {
    Dims shape(static_cast<size_t>(t.dim()) + 1, 1);
    shape[0] = count;
    value = value.reshape(shape);
  } else if (!keepdim) {
    value = value.squeeze(dim + 1);
  }
  return q.dim() == 0 ? value.select(0, 0) : value;
}

// Few elements are compared with each value, in one pass; among more a place is found by halves.
constexpr int64_t kFew = 32;

// How many elements of the sorted last dimension lie below each value (or at it, right). NaN comes last.
Tensor places(const Tensor& sorted, const Tensor& values, bool right) {
  ops::refuse_bool(sorted.dtype(), "searchsorted_out_cpu");
  const NoGrad off;
  const int64_t n = sorted.size(-1);
  const auto is_before = [&](const Tensor& s, const Tensor& v) {
    const Tensor before = right ? le(s, v) : lt(s, v);
    return is_floating(v.dtype()) ? logical_or(before, isnan(v)) : before;
  };
  if (n <= kFew) return sum(is_before(sorted.unsqueeze(-2), values.unsqueeze(-1)), Dims{-1});
  const Tensor order = sorted.contiguous();
  if (sorted.dtype() == values.dtype() && size_of(sorted.dtype()) >= 4 && ops::takes_host_loop({&order, &values})) {
    const Dims& shape = values.sizes();
    if (order.dim() == 1 || (values.dim() == order.dim() && product(std::span<const int64_t>(order.sizes()).first(shape.size() - 1)) ==
                                                                product(std::span<const int64_t>(shape).first(shape.size() - 1)))) {
      const Tensor wanted = values.contiguous(), out = ops::make_result(shape, DType::I64, values.device(), "searchsorted");
      ops::run_host_loop(ir::HostLoop::Kind::Places, {&order, &wanted}, {&out}, {right});
      return out;
    }
  }
  Tensor below = zeros(values.sizes(), Options(DType::I64, values.device()));  // so many are known to
  int64_t step = 1;
  while (step <= n / 2) step *= 2;
  for (; step > 0; step /= 2) {
    const Tensor more = below + step;
    const Tensor at = clamp_max(more, Operand(n)) - 1;
    const Tensor s = order.dim() == 1 ? take(order, at) : gather(order, -1, at);
    below = where(logical_and(le(more, Operand(n)), is_before(s, values)), more, below);
  }
  return below;
}

}  // namespace

// As lerp, but that b - a counts only where it is a number.
Tensor ops::between(const Tensor& a, const Tensor& b, const Tensor& share) {
  Tensor value;
  {
    const NoGrad off;
    const Tensor from = a.detach(), to = b.detach(), part = share.detach();
    const Tensor infinite = logical_or(isinf(from), isinf(to));
    value = where(logical_or(eq(part, 0.0), eq(from, to)), from, where(infinite, from + to, lerp(from, to, part)));
  }
  return autograd::record(value, "LerpBackward1", {&a, &b, &share}, {&a, &b, &share},
                          [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
                            const Tensor& part = saved[2];
                            const Tensor along =
                                autograd::requires_grad(part) ? ops::sum_to(g[0] * (saved[1] - saved[0]), part.sizes()) : Tensor();
                            return {g[0] * (1.0 - part), g[0] * part, along};
                          });
}

// NaN, or the least integer, with a history.
Tensor ops::median_of_none(const Tensor& t) {
  const DType type = t.dtype();
  const Scalar value = is_floating(type) ? Scalar(NAN)
                       : type == DType::I32 || type == DType::I64
                           ? Scalar(std::numeric_limits<int64_t>::min() >> (63 - traits_of(type).digits))
                           : Scalar(0);
  return ops::record_choice(full({}, value, Options(type, t.device())), t, "MedianBackward0");
}

Tensor median(const Tensor& t) {
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

Tensor histc(const Tensor& t, int64_t bins, double low, double high) {
  if (t.device().is_cpu()) ops::require_floating(t.dtype(), "histogram_cpu");  // PyTorch counts integers on GPUs only
  if (bins < 1) throw RuntimeError("bins must be > 0, got {}", bins);
  if (t.device().is_meta()) return empty({bins}, Options(t.dtype(), t.device()));
  const Tensor x = t.detach().reshape({-1});
  if (low == high && x.numel() > 0) low = min(x).item<double>(), high = max(x).item<double>();
  if (!std::isfinite(low) || !std::isfinite(high)) throw RuntimeError("torch.histc: range of [{}, {}] is not finite", low, high);
  if (low == high) low -= 1, high += 1;
  if (low > high) throw RuntimeError("max must be larger than min, got {} and {}", high, low);
  const Tensor inside = masked_select(x, logical_and(ge(x, Operand(low)), le(x, Operand(high))));
  const Tensor place = mul(sub(inside, Operand(low)), Operand(static_cast<double>(bins) / (high - low))).to(DType::I64);
  return bincount(clamp_max(place, Operand(bins - 1)), bins).to(t.dtype());
}

Tensor searchsorted(const Tensor& sorted, const Operand& values, bool out_int32, bool right, std::optional<std::string_view> side,
                    const Tensor& sorter) {
  if (side && *side != "left" && *side != "right")
    throw RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
  if (side && *side == "left" && right)
    throw RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  const Tensor in_order = sorter.defined() ? gather(sorted, -1, sorter) : sorted;
  const Tensor v = values.is_tensor() ? values.tensor() : scalar_tensor(values.scalar(), sorted.device());
  const bool behind = right || (side && *side == "right");
  const Tensor out = v.dim() == 0 ? places(in_order, v.reshape({1}), behind).reshape({}) : places(in_order, v, behind);
  return out_int32 ? out.to(DType::I32) : out;
}

Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32, bool right) {
  const Tensor out = places(boundaries, values.reshape({-1}), right).reshape(values.sizes());
  return out_int32 ? out.to(DType::I32) : out;
}

namespace {

Tensor is_one_of(const Tensor& a, const Tensor& tests) {
  const int64_t n = tests.numel();
  if (n <= kFew) return any(eq(a.unsqueeze(-1), tests), Dims{-1});
  const NoGrad off;
  const DType type = promote(a.dtype(), tests.dtype());
  const Tensor order = sort(tests.to(type)).first, flat = a.to(type).reshape({-1});
  return eq(take(order, clamp_max(places(order, flat, false), Operand(n - 1))), flat).reshape(a.sizes());
}

}  // namespace

Tensor isin(const Operand& elements, const Operand& tests, bool invert) {
  if (!elements.is_tensor() && !tests.is_tensor()) throw TypeError("isin(): wanted a Tensor among elements and test_elements");
  const Tensor a = elements.is_tensor() ? elements.tensor() : scalar_tensor(elements.scalar(), tests.tensor().device());
  if (a.dtype() == DType::Bool || is_complex(a.dtype()))
    throw NotImplementedError("Unsupported input type encountered for isin(): {}", ops::torch_name(a.dtype()));
  const Tensor found = tests.is_tensor() ? is_one_of(a, tests.tensor().reshape({-1})) : eq(a, tests);
  return invert ? logical_not(found) : found;
}

}  // namespace naru
