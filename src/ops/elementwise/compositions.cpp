// Elementwise functions and reductions that are compositions of a few others.
#include "naru/ops/functions.h"

#include <cmath>
#include <numbers>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "ir/special_ids.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/rules.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

Tensor round(const Tensor& t, int64_t decimals) {
  if (decimals == 0) return round(t);
  ops::require_floating(t.dtype(), "round_cpu");
  if (ops::is_half(t.dtype())) return round(t.to(DType::F32), decimals).to(t.dtype());  // in 16 bits the product would overflow and round
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals > 0 ? round(t * Operand(scale)) / Operand(scale) : round(t / Operand(scale)) * Operand(scale);
}

void round_(const Tensor& t, int64_t decimals) {
  if (decimals == 0)
    Tensor(t).round_();
  else
    Tensor(t).copy_(round(t, decimals));
}

Tensor float_power(const Operand& base, const Operand& exponent) {
  const Operand both[] = {base, exponent};
  const DType type = is_complex(ops::result_type(both)) ? kComplex128 : DType::F64;
  const auto exact = [type](const Operand& o) { return o.is_tensor() ? o.tensor().to(type) : scalar_tensor(o.scalar(), type); };
  return pow(exact(base), exact(exponent));
}

Tensor rad2deg(const Tensor& t) {
  ops::refuse_complex(t, "rad2deg");
  return t * Operand(57.29577951308232);
}
Tensor deg2rad(const Tensor& t) {
  ops::refuse_complex(t, "deg2rad");
  return t * Operand(0.017453292519943295);
}

Tensor logit(const Tensor& t, std::optional<double> eps) {
  ops::refuse_complex(t, "logit");
  if (!is_inexact(t.dtype())) return logit(t.to(default_dtype()), eps);
  const double low = eps.value_or(0), high = 1 - low;
  Tensor y;
  {
    const NoGrad off;
    Tensor x = t;
    if (eps) {
      // Apply the lower limit first, so that it wins if eps > 1/2.
      x = where(t > Operand(high), Operand(high), t);
      x = where(t < Operand(low), Operand(low), x);
    }
    const DType type = x.dtype();  // narrower ones are rounded after each operator
    y = type == DType::F32 || type == DType::F64 ? ops::apply(ir::op::log_odds, {{&x, {}, type}}, type, "logit") : log(x / (1.0 - x));
  }
  // Outside the limits it is constant, or (without eps) undefined.
  return autograd::record(y, "LogitBackward0", {&t}, {&t}, [=](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) {
    const Tensor& x = saved[0];
    const Tensor outside = logical_or(x<Operand(low), x> Operand(high)), inner = where(outside, 0.5, x);
    return std::vector{where(outside, eps ? 0.0 : std::numeric_limits<double>::quiet_NaN(), g[0] / (inner * (1.0 - inner)))};
  });
}

Tensor nan_to_num(const Tensor& t, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (ops::has_sparse_form(t)) return ops::map_stored(t, [&](const Tensor& v) { return nan_to_num(v, nan, posinf, neginf); });
  if (is_complex(t.dtype())) return complex(nan_to_num(real(t), nan, posinf, neginf), nan_to_num(imag(t), nan, posinf, neginf));
  if (!is_floating(t.dtype())) return t.clone();
  const double most = traits_of(t.dtype()).greatest;
  Tensor x = where(isnan(t), Operand(nan), t);
  x = where(isposinf(t), Operand(posinf.value_or(most)), x);
  return where(isneginf(t), Operand(neginf.value_or(-most)), x);
}

Tensor heaviside(const Tensor& t, const Tensor& at_zero) {
  if (t.dtype() != at_zero.dtype())
    throw RuntimeError("heaviside is not yet implemented for tensors with different dtypes. (got {} and {})", name_of(t.dtype()),
                       name_of(at_zero.dtype()));
  ops::refuse_complex(t, "heaviside");
  const Tensor out = where(eq(t, Operand(0)), at_zero.detach(), gt(t, Operand(0)).to(t.dtype()));
  return autograd::record_refused(out, {&t, &at_zero}, "heaviside");
}

Tensor gelu(const Tensor& t, std::string_view approximate) {
  if (approximate == "none") return gelu(t);
  if (approximate == "tanh") return gelu_tanh(t);
  throw RuntimeError("approximate argument must be either none or tanh. (gelu: got '{}')", approximate);
}

Tensor nansum(const Tensor& t, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  ops::refuse_complex(t, "nansum");
  return sum(is_floating(t.dtype()) ? where(isnan(t), Operand(0.0), t) : t, dims, keepdim, dtype);
}

Tensor nanmean(const Tensor& t, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = dtype ? t.to(*dtype) : t;
  if (!is_floating(x.dtype()))
    throw NotImplementedError("nanmean(): expected input to have floating point or complex dtype but got {}", ops::torch_name(x.dtype()));
  if (ops::is_half(x.dtype())) return nanmean(x.to(DType::F32), dims, keepdim, std::nullopt).to(x.dtype());
  return div(sum(where(isnan(x), Operand(0.0), x), dims, keepdim), sum(logical_not(isnan(x)), dims, keepdim));
}

std::pair<Tensor, Tensor> aminmax(const Tensor& t, std::optional<int64_t> dim, bool keepdim) {
  const OptionalDims dims = dim ? OptionalDims(Dims{*dim}) : OptionalDims();
  return {amin(t, dims, keepdim), amax(t, dims, keepdim)};
}

Tensor trace(const Tensor& t) {
  if (auto y = ops::wrapped("trace", trace, t)) return *std::move(y);
  ops::refuse_bool(t.dtype(), "trace");
  return sum(t.diagonal(0, 0, 1));
}

bool is_nonzero(const Tensor& t) {
  if (t.numel() != 1) throw RuntimeError("Boolean value of Tensor with {} is ambiguous", t.numel() ? "more than one value" : "no values");
  return t.item().to_bool();
}

Tensor fill(const Tensor& t, const Operand& value) {
  Tensor out = t.clone();
  out.fill_(value);
  return out;
}

void tril_(const Tensor& t, int64_t diagonal) { Tensor(t).copy_(tril(t, diagonal)); }
void triu_(const Tensor& t, int64_t diagonal) { Tensor(t).copy_(triu(t, diagonal)); }
void cumsum_(const Tensor& t, int64_t dim) { Tensor(t).copy_(cumsum(t, dim)); }

void dropout_(const Tensor& t, double p, bool training) {
  if (training && p > 0) Tensor(t).mul_(dropout(ones_like(t.detach()), p, true));
}

Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  const Operand operands[] = {a, b};
  const DType type = ops::result_type(operands);
  ops::require_floating(type, "logaddexp2_cpu");
  if (ops::is_half(type)) return logaddexp2(a.to(DType::F32), b.to(DType::F32)).to(type);
  return logaddexp(a * std::numbers::ln2, b * std::numbers::ln2) / std::numbers::ln2;
}

Tensor sinc(const Tensor& t) {
  if (ops::is_half(t.dtype())) return sinc(t.to(DType::F32)).to(t.dtype());
  const Tensor x = (is_inexact(t.dtype()) ? t : t.to(default_dtype())) * std::numbers::pi;
  // Near 0 the derivatives divide by 0 or cancel. There this many terms of the series are exact.
  const Tensor near = abs(x) < 1e-2, square = where(near, x * x, 0.0);
  const Tensor series = 1.0 - square * (1.0 / 6 - square * (1.0 / 120 - square * (1.0 / 5040 - square * (1.0 / 362880))));
  return where(near, series, sin(x) / where(near, 1.0, x));
}

}  // namespace naru
