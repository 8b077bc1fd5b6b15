#include <cmath>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/elementwise/half.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

Tensor value_of(int64_t n, const Tensor& x) {
  const double s = static_cast<double>(n) + 1;
  const auto sum = [s](const Tensor& q) { return zeta(Operand(s), q); };
  const double sign = n % 2 ? 1 : -1, factor = sign * std::tgamma(s);
  if (n == 1) return sum(x);
  // For negative x, the terms at negative arguments are a difference of two zeta sums at positive arguments, with the sign of the power.
  const Tensor left = x < 0, rest = x - floor(x);
  const Tensor there = sum(where(left, ones_like(x), x));
  const Tensor inside = where(left, rest, ones_like(x));
  const Tensor beyond = (sum(1 - inside + where(left, zeros_like(x), ones_like(x))) - sum(1 - where(left, x, zeros_like(x)))) * sign;
  return where(left, sum(inside) + beyond, there) * factor;
}

}  // namespace

Tensor polygamma(int64_t n, const Tensor& t) {
  ops::require_defined(t, "polygamma", "input");
  if (n < 0) throw RuntimeError("polygamma(n, x) does not support negative n. (got {})", n);
  const Tensor x = is_inexact(t.dtype()) ? t : t.to(default_dtype());
  if (n == 0) return digamma(x);
  Tensor y;
  {
    const NoGrad off;
    y = ops::is_half(x.dtype()) ? value_of(n, x.to(DType::F32)).to(x.dtype()) : value_of(n, x);
  }
  return autograd::record(y, "PolygammaBackward0", {&x}, {&x}, [n](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) {
    return std::vector<Tensor>{g[0] * polygamma(n + 1, saved[0])};
  });
}

}  // namespace naru
