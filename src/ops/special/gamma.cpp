// The regularized incomplete gamma functions P (lower) and Q (upper).
#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/history/constant.h"
#include "naru/ops/special.h"
#include "ops/elementwise/by_float64.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/type_names.h"

namespace naru::special {
namespace {

using ops::polynomial;
constexpr double kLarge = 20;  // from this a on, integrate numerically

// x^a exp(-x) / Gamma(a + 1); for a >= 10 by Stirling's series, so that no large terms cancel.
Tensor density(const Tensor& a, const Tensor& x) {
  constexpr double kTen = 10;
  const Tensor small = clamp_max(a, kTen), big = clamp_min(a, kTen);
  const Tensor direct = exp(small * log(x) - x - lgamma(small + 1.0));
  constexpr double kStirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const Tensor i = reciprocal(big), mu = (x - big) / big;
  const Tensor stirling = exp(big * (log1p(mu) - mu) - polynomial(kStirling, i * i) * i) * rsqrt(big * (2 * std::numbers::pi));
  return where(lt(a, kTen), direct, stirling);
}

// P for x below about a + 1: density times the sum of x^k / ((a + 1) ... (a + k)).
Tensor by_series(const Tensor& a, const Tensor& x) {
  Tensor sum = ones_like(a), term = sum;
  for (int k = 1; k <= 60; ++k) {
    term = term * (x / (a + static_cast<double>(k)));
    sum = sum + term;
  }
  return sum * density(a, x);
}

// Q for larger x: a continued fraction, evaluated from its tail.
Tensor by_fraction(const Tensor& a, const Tensor& x) {
  Tensor rest = x + (2.0 * 80 + 1) - a;
  for (int k = 80; k >= 1; --k) rest = x + (2.0 * k - 1) - a - (k - a) * static_cast<double>(k) / rest;
  return density(a, x) * a / rest;
}

struct Rule {
  std::vector<double> at, weight;
};
// Gauss-Legendre quadrature on [0, 1].
Rule gauss(int n) {
  Rule r;
  for (int i = 0; i < n; ++i) {
    double z = std::cos(std::numbers::pi * (i + 0.75) / (n + 0.5)), slope = 1;
    for (int step = 0; step < 20; ++step) {
      double now = 1, before = 0;
      for (int k = 1; k <= n; ++k) {
        const double next = ((2 * k - 1) * z * now - (k - 1) * before) / k;
        before = now, now = next;
      }
      slope = n * (z * now - before) / (z * z - 1);
      z -= now / slope;
    }
    r.at.push_back((1 - z) / 2), r.weight.push_back(1 / ((1 - z * z) * slope * slope));
  }
  return r;
}

// P for x below a, Q above it, for a >= kLarge: integrates the density from x to where it is negligible.
Tensor by_integration(const Tensor& a, const Tensor& x, const Tensor& right) {
  static const Rule& rule = *new Rule(gauss(48));
  const Tensor root = sqrt(a);
  const Tensor above = maximum(a + root * 16.0, x + root * 10.0), below = clamp_min(minimum(a - root * 9.0, x - root * 7.0), 0.0);
  const Tensor length = where(right, above, below) - x;
  Tensor sum = zeros_like(a);
  for (size_t i = 0; i < rule.at.size(); ++i) {
    const Tensor t = x + length * rule.at[i];
    sum = sum + density(a, t) / t * rule.weight[i];
  }
  return sum * a * abs(length);
}

// P, or Q if `upper`, for a and x in float64.
Tensor incomplete(const Tensor& a, const Tensor& x, bool upper) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Tensor inside = logical_and(logical_and(gt(a, 0.0), gt(x, 0.0)), logical_and(isfinite(a), isfinite(x)));
  const Tensor b = where(inside, a, 1.0), y = where(inside, x, 1.0);
  const Tensor large = ge(b, kLarge), right = where(large, gt(y, b), gt(y, clamp_min(b + 1.0, 3.0)));
  const Tensor low = where(large, 1.0, b), at = where(large, 1.0, y);
  const Tensor left_small = by_series(low, clamp_max(at, kLarge + 2.0)), right_small = by_fraction(low, clamp_min(at, 1.0));
  const Tensor one_side =
      where(large, by_integration(clamp_min(b, kLarge), where(large, y, kLarge), right), where(right, right_small, left_small));
  const Tensor value = where(upper ? right : logical_not(right), one_side, 1.0 - one_side);
  // Limits where a or x is 0 or infinite; NaN where both are, and for negative arguments.
  const double at_zero = upper ? 1 : 0;
  Tensor ends = where(eq(a, 0.0), 1 - at_zero, at_zero);  // x is 0, or a
  ends = where(isinf(x), 1 - at_zero, where(isinf(a), at_zero, ends));
  ends = where(logical_or(lt(a, 0.0), lt(x, 0.0)), kNan, ends);
  ends = where(logical_or(logical_and(eq(a, 0.0), eq(x, 0.0)), logical_and(isinf(a), isinf(x))), kNan, ends);
  ends = where(logical_or(isnan(a), isnan(x)), kNan, ends);
  return where(inside, value, ends);
}

Tensor regularised(const Tensor& a, const Tensor& x, bool upper) {
  const char* const name = upper ? "igammac" : "igamma";
  ops::require_defined(a, name, "input"), ops::require_defined(x, name, "other");
  const Tensor* const both[] = {&a, &x};
  const char* const roles[] = {"input", "other"};
  ops::common_device(both, roles, name);
  const Operand operands[] = {a, x};
  const DType type = ops::result_type(operands);
  if (!is_floating(type)) ops::throw_not_implemented(upper ? "igammac_cpu" : "igamma_cpu", type);
  const Dims shape = broadcast_shapes(a.sizes(), x.sizes());
  Tensor y;
  {
    const NoGrad off;
    y = incomplete(a.to(DType::F64).expand(shape), x.to(DType::F64).expand(shape), upper).to(type);
  }
  return autograd::record(
      y, upper ? "IgammacBackward0" : "IgammaBackward0", {&a, &x}, {&a, &x},
      [upper](const std::vector<Tensor>& g, const std::vector<Tensor>& saved, autograd::Needed needed) -> std::vector<Tensor> {
        if (needed[0]) autograd::throw_underived(upper ? "igammac: input" : "igamma: input");
        const Tensor &p = saved[0], &t = saved[1];
        const Tensor slope = g[0] * exp((p - 1.0) * log(t) - t - lgamma(p));
        return {Tensor(), upper ? -slope : slope};
      });
}

}  // namespace

Tensor gammainc(const Tensor& a, const Tensor& x) { return regularised(a, x, false); }
Tensor gammaincc(const Tensor& a, const Tensor& x) { return regularised(a, x, true); }

}  // namespace naru::special
