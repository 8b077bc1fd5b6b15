#include "naru/compositions.h"

#include <cmath>
#include <limits>

#include "naru/ops.h"
#include "ops/numbers.h"

namespace naru {

Tensor round(const Tensor& t, int64_t decimals) {
  if (decimals == 0) return round(t);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals > 0 ? round(t * Operand(scale)) / Operand(scale) : round(t / Operand(scale)) * Operand(scale);
}

Tensor float_power(const Operand& base, const Operand& exponent) {
  const auto exact = [](const Operand& o) { return o.is_tensor() ? o.tensor().to(DType::F64) : scalar_tensor(o.scalar(), DType::F64); };
  return pow(exact(base), exact(exponent));
}

Tensor rad2deg(const Tensor& t) { return t * Operand(57.29577951308232); }
Tensor deg2rad(const Tensor& t) { return t * Operand(0.017453292519943295); }

Tensor logit(const Tensor& t, std::optional<double> eps) {
  Tensor x = t;
  if (eps) {
    // The lower limit first: it wins where eps is above 1/2.
    x = where(t > Operand(1 - *eps), Operand(1 - *eps), t);
    x = where(t < Operand(*eps), Operand(*eps), x);
  }
  return log(x / (1.0 - x));
}

Tensor nan_to_num(const Tensor& t, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(t.dtype())) return t.clone();
  const double most = t.dtype() == DType::F64    ? std::numeric_limits<double>::max()
                      : t.dtype() == DType::F16  ? 65504.0
                      : t.dtype() == DType::BF16 ? 3.3895313892515355e38
                                                 : static_cast<double>(std::numeric_limits<float>::max());
  Tensor x = where(isnan(t), Operand(nan), t);
  x = where(isposinf(t), Operand(posinf.value_or(most)), x);
  return where(isneginf(t), Operand(neginf.value_or(-most)), x);
}

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
}  // namespace

Tensor median(const Tensor& t) {
  const Tensor flat = t.reshape({-1});
  if (flat.numel() == 0 && is_floating(t.dtype())) return full({}, Scalar(NAN), Options(t.dtype(), t.device()));
  return median_along(flat, 0).first.select(0, 0);
}

std::pair<Tensor, Tensor> median(const Tensor& t, int64_t dim, bool keepdim) {
  if (t.dim() == 0) return sort(t, dim);
  const auto [values, places] = median_along(t, dim);
  if (keepdim) return {values, places};
  return {values.squeeze(dim), places.squeeze(dim)};
}

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  if (a.dim() < 2 || b.dim() < 2)
    throw RuntimeError("cdist only supports at least 2D tensors, got {} and {}", a.sizes().str(), b.sizes().str());
  if (a.size(-1) != b.size(-1)) throw RuntimeError("X1 and X2 must have the same number of columns. X1: {} X2: {}", a.size(-1), b.size(-1));
  return norm(sub(a.unsqueeze(-2), b.unsqueeze(-3)), p, Dims{-1});
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> given) {
  const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
  const Tensor x = a.expand(shape), y = b.expand(shape);
  int64_t dim = -1;
  if (given) {
    dim = wrap_dim(*given, x.dim());
  } else {
    for (int64_t d = 0; d < x.dim() && dim < 0; ++d)
      if (x.size(d) == 3) dim = d;
    if (dim < 0) throw RuntimeError("no dimension of size 3 in input of shape {}", shape.str());
  }
  if (x.size(dim) != 3)
    throw RuntimeError("linalg.cross: inputs dimension {} must have length 3. Got {} and {}", dim, a.size(dim), b.size(dim));
  const auto part = [&](const Tensor& t, int64_t i) { return t.select(dim, i % 3); };
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i) parts.push_back(sub(mul(part(x, i + 1), part(y, i + 2)), mul(part(x, i + 2), part(y, i + 1))));
  return stack(parts, dim);
}

Tensor inner(const Tensor& a, const Tensor& b) { return a.dim() && b.dim() ? matmul(a, b.dim() > 1 ? b.transpose(-1, -2) : b) : mul(a, b); }

namespace {
Tensor scaled_sum(const Tensor& c, const Tensor& product, Scalar beta, Scalar alpha) {
  if (!is_floating(c.dtype())) beta = ops::converted(beta, c.dtype()), alpha = ops::converted(alpha, c.dtype());
  const Tensor x = alpha.to_double() == 1 ? product : mul(product, Operand(alpha));
  return beta.to_double() == 1 ? add(c, x) : add(mul(c, Operand(beta)), x);
}
}  // namespace

Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta, Scalar alpha) {
  return scaled_sum(c, mv(matrix, vector), beta, alpha);
}

Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  return scaled_sum(c, bmm(a, b), beta, alpha);
}

}  // namespace naru
