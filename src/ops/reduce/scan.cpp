// cumsum, cumprod, cummax, cummin, logcumsumexp.
#include <fmt/format.h>
#include <limits>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/float8.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/host_loop.h"
#include "ops/elementwise/unsigned.h"
#include "ops/index/positions.h"
#include "ops/reduce/reduction.h"
#include "ops/reduce/scan.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using Tensors = std::vector<Tensor>;

namespace {

Tensor raw_scan(ir::ReduceOp op, const Tensor& t, int64_t dim, DType type, const char* name) {
  if (is_complex(type)) {
    ops::refuse_complex(type == kComplex32 ? type : DType::F32, fmt::format("{}_out_cpu", name));
    const Tensor x = t.dtype() == type ? t : ops::apply(ir::op::copy, {{&t, {}, type}}, type, name);
    return t.dim() == 0 ? x.detach().clone() : ops::as_complex(raw_scan(op, ops::as_real(x), dim, real_of(type), name));
  }
  if (is_wide_unsigned(type)) ops::refuse(fmt::format("{}_out", name), type);
  if (is_float8(t.dtype()) && !is_float8(type)) return raw_scan(op, ops::as_float32(t), dim, type, name);
  if (is_wide_unsigned(t.dtype())) return raw_scan(op, ops::as_computed(t, type), dim, type, name);
  ops::refuse_complex(t, name);
  // Convert to `type` first if it differs: the scan only converts from `type` to its accumulator.
  const DType acc = is_inexact(type) ? ops::accumulator_of(type) : type == DType::Bool ? DType::I64 : type;
  const Tensor from = t.dtype() == type ? t : ops::apply(ir::op::copy, {{&t, {}, type}}, type, name);
  Tensor out = ops::make_result(t.sizes(), acc, t.device(), name);
  if (out.numel() > 0) {
    ir::Scan s;
    s.op = op;
    s.shape = t.sizes();
    s.in = ops::view_of(from, t.sizes());
    s.out = ops::view_of(out, t.sizes());
    if (s.shape.empty()) {
      s.shape.push_back(1), s.in.strides.push_back(0), s.out.strides.push_back(0);
    } else {
      const auto d = static_cast<size_t>(dim);
      for (Dims* dims : {&s.shape, &s.in.strides, &s.out.strides}) {
        const int64_t last = (*dims)[d];
        dims->erase(d);
        dims->push_back(last);
      }
    }
    ops::submit(std::move(s), {&from}, {&out});
  }
  return acc == type ? out : ops::apply(ir::op::copy, {{&out, {}, type}}, type, name);
}

DType scan_type(const Tensor& t, std::optional<DType> dtype) { return dtype.value_or(is_inexact(t.dtype()) ? t.dtype() : DType::I64); }

}  // namespace

Tensor ops::running_extreme(const Tensor& t, int64_t dim, bool greatest) {
  return raw_scan(greatest ? ir::ReduceOp::Max : ir::ReduceOp::Min, t, dim, t.dtype(), greatest ? "cummax" : "cummin");
}

// y[i] = x[0] + ... + x[i], in order. Integers and bool give int64. Gradient: the cumulative sum from the end.
Tensor cumsum(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped("cumsum", cumsum, t, ops::Dim{dim}, dtype)) return *std::move(y);
  ops::require_defined(t, "cumsum", "input");
  const int64_t d = wrap_dim(dim, t.dim());
  if (dtype && is_complex(t.dtype()) && !is_complex(*dtype)) return cumsum(t.to(*dtype), d, dtype);
  const bool flat = t.dim() == 0;
  return record(raw_scan(ir::ReduceOp::Sum, t, d, scan_type(t, dtype), "cumsum"), "CumsumBackward0", {&t}, {},
                [d, flat, type = t.dtype()](const Tensors& g, const Tensors&) -> Tensors {
                  const Tensor grad = flat ? g[0] : flip(cumsum(flip(g[0], {d}), d), {d});
                  return {ops::gradient_as(grad, type)};
                });
}

namespace {

// The gradient of cumprod without division: s[i] = gy[i] + x[i + 1] s[i + 1], from the end, one index after another.
Tensor cumprod_gradient_by_steps(const Tensor& g, const Tensor& x, int64_t dim) {
  if (ops::is_half(x.dtype())) return cumprod_gradient_by_steps(g.to(DType::F32), x.to(DType::F32), dim).to(x.dtype());
  const int64_t n = x.size(dim);
  Dims first = x.sizes();
  first[static_cast<size_t>(dim)] = 1;
  std::vector<Tensor> parts(static_cast<size_t>(n));
  Tensor s;
  for (int64_t i = n; i-- > 0;) {
    const Tensor gi = g.narrow(dim, i, 1);
    if (s.defined()) {
      const Tensor next = x.narrow(dim, i + 1, 1);
      s = gi + next * where((next == 0) & ~isfinite(s), 0.0, s);  // what is behind a 0 may be infinite
    } else {
      s = gi;
    }
    parts[static_cast<size_t>(i)] = s;
  }
  const Tensor one = ones(first, Options(x.dtype(), x.device()));
  const Tensor before = n == 1 ? one : cat({one, cumprod(x.narrow(dim, 0, n - 1), dim)}, dim);
  return before * cat(parts, dim);
}

// Parallel scan: multiplies each element by the product of those before it, over distances of 1, 2, 4 ...
Tensor complex_cumprod(const Tensor& t, int64_t dim) {
  ops::refuse_complex(t.dtype() == kComplex32 ? t.dtype() : DType::F32, "cumprod_out_cpu");
  if (t.dim() == 0) return t.clone();
  Tensor x = t.clone();
  for (int64_t step = 1, n = t.size(dim); step < n; step *= 2)
    x = cat({x.narrow(dim, 0, step), x.narrow(dim, step, n - step) * x.narrow(dim, 0, n - step)}, dim);
  return x;
}

}  // namespace

// y[i] = x[0] * ... * x[i], in order.
Tensor cumprod(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped("cumprod", cumprod, t, ops::Dim{dim}, dtype)) return *std::move(y);
  ops::require_defined(t, "cumprod", "input");
  const int64_t d = wrap_dim(dim, t.dim());
  const DType type = scan_type(t, dtype);
  if (is_complex(type)) return complex_cumprod(t.to(type), d);
  if (is_complex(t.dtype())) return cumprod(t.to(type), d, dtype);
  return record(raw_scan(ir::ReduceOp::Prod, t, d, type, "cumprod"), "CumprodBackward0", {&t}, {&t},
                [d, type](const Tensors& g, const Tensors& saved) -> Tensors {
                  const Tensor& original = saved[0];
                  if (original.dim() == 0 || original.numel() == 0 || original.size(d) == 1) return {g[0].to(original.dtype())};
                  const Tensor x = original.to(type);
                  Tensor gx;
                  if (ops::holds(all(x))) {
                    const Tensor y = cumprod(x, d);
                    gx = flip(cumsum(flip(g[0] * y, {d}), d), {d}) / x;
                  } else {
                    gx = cumprod_gradient_by_steps(g[0], x, d);
                  }
                  return {gx.to(original.dtype())};
                });
}

namespace {

// Parallel scan: combines each element with those before it, over distances of 1, 2, 4 ... by f(earlier, later).
template <class F>
Tensor scanned(Tensor value, int64_t dim, F f) {
  const int64_t n = value.size(dim);
  for (int64_t step = 1; step < n; step *= 2)
    value = cat({value.narrow(dim, 0, step), f(value.narrow(dim, 0, n - step), value.narrow(dim, step, n - step))}, dim);
  return value;
}

// The cumulative maximum and its index: the last of equal elements, and of NaNs.
std::pair<Tensor, Tensor> running_greatest(const Tensor& t, int64_t dim, bool greatest) {
  const NoGrad no_history;
  if (dim == t.dim() - 1 && size_of(t.dtype()) >= 4 && ops::can_use_host_loop({&t})) {
    const Tensor rows = t.contiguous(), values = ops::make_result(t.sizes(), t.dtype(), t.device(), "cummax"),
                 places = ops::make_result(t.sizes(), DType::I64, t.device(), "cummax");
    ops::run_host_loop(ir::HostLoop::Kind::RunningExtreme, {&rows}, {&values, &places}, {greatest});
    return {values, places};
  }
  const Tensor x = t.detach(), values = ops::running_extreme(x, dim, greatest);
  // Indices up to 2^24 are exact in float32, which is faster.
  const bool few = x.size(dim) <= int64_t{1} << 24;
  const Tensor places = ops::positions_along(x, dim, few ? DType::F32 : DType::I64);
  const Tensor at = ops::running_extreme(where((x == values) | (x != x), places, -1), dim, true);
  return {values, few ? at.to(DType::I64) : at};
}

std::pair<Tensor, Tensor> running(const Tensor& t, int64_t dim, bool greatest, const char* op) {
  if (auto y = ops::wrapped(ops::kNoCasts, running, t, ops::Dim{dim}, greatest, op)) return *std::move(y);
  ops::require_defined(t, op, "input");
  ops::refuse_complex(t.dtype(), greatest ? "cummax_helper_cpu" : "cummin_helper_cpu");
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.dim() == 0 || t.numel() == 0) return {t.clone(), zeros(t.sizes(), Options(DType::I64, t.device()))};
  const auto [values, at] = running_greatest(t, d, greatest);
  return {t.requires_grad() && grad_enabled() ? gather(t, d, at) : values, at};
}

}  // namespace

std::pair<Tensor, Tensor> cummax(const Tensor& t, int64_t dim) { return running(t, dim, true, "cummax"); }
std::pair<Tensor, Tensor> cummin(const Tensor& t, int64_t dim) { return running(t, dim, false, "cummin"); }

namespace {

// What scanned() gives for logaddexp, without a history.
Tensor added_exponentials(Tensor value, int64_t dim) {
  const NoGrad off;
  const DType type = value.dtype();
  const int64_t n = value.size(dim);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor next = ops::make_result(value.sizes(), type, value.device(), "logcumsumexp");
    const Tensor first = value.narrow(dim, 0, step), earlier = value.narrow(dim, 0, n - step), later = value.narrow(dim, step, n - step);
    const ops::OpOperand copied[] = {{&first, {}, type}}, added[] = {{&earlier, {}, type}, {&later, {}, type}};
    ops::apply_into(ir::op::copy, copied, next.narrow(dim, 0, step));
    ops::apply_into(ir::op::logaddexp, added, next.narrow(dim, step, n - step));
    value = next;
  }
  return n == 1 ? value.detach().clone() : value;
}

}  // namespace

Tensor logcumsumexp(const Tensor& t, int64_t dim) {
  if (auto y = ops::wrapped(ops::kNoCasts, logcumsumexp, t, ops::Dim{dim})) return *std::move(y);
  ops::require_defined(t, "logcumsumexp", "input");
  if (!is_inexact(t.dtype()))
    throw NotImplementedError("\"logcumsumexp_out_cpu\" not implemented for '{}' (convert to floating point first)",
                              ops::torch_name(t.dtype()));
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.dim() == 0 || t.numel() == 0) return t.clone();
  // If both are -inf, the result is -inf without a gradient: logaddexp's gradient would be that of inf - inf.
  const auto together = [](const Tensor& earlier, const Tensor& later) {
    if (is_complex(earlier.dtype())) return logaddexp(earlier, later);
    const Tensor none = logical_and(isneginf(earlier.detach()), isneginf(later.detach()));
    return where(none, -std::numeric_limits<double>::infinity(), logaddexp(where(none, 0.0, earlier), where(none, 0.0, later)));
  };
  const bool half = ops::is_half(t.dtype());
  const Tensor x = half ? t.to(DType::F32) : t;
  const bool plain = !is_complex(t.dtype()) && !(grad_enabled() && t.requires_grad());
  const Tensor y = plain ? added_exponentials(x, d) : scanned(x, d, together);
  return (half ? y.to(t.dtype()) : y).contiguous();
}

}  // namespace naru
