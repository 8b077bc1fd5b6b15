// The normal distribution's quantiles and modified Bessel functions. All by way of F64.
#include <cmath>

#include "ir/math/detail.h"
#include "ir/math/special.h"

namespace naru::ir {
namespace {
using namespace detail;

// Quotients of polynomials, after Wichura (1988, AS 241): around 1/2, in the tails, and far out in them.
struct Quotient {
  double above[8], below[8];
  V operator()(V x) const { return polynomial(x, above) / polynomial(x, below); }
};
constexpr Quotient kNear{{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
                          4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
                         {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
                          3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
constexpr Quotient kTail{{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
                          1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
                         {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
                          1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
constexpr Quotient kFarTail{{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
                             2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
                            {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
                             1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};

// I_n(a) times exp(-a) where `scaled`, for F64 a >= 0, with all its bits or as many as a float needs; n: 0 or 1. The power series in the
// middle, the asymptotic one behind.
V bessel(V a, int n, bool scaled, bool full) {
  const double far_from = full ? 20 : 12;
  const int near_terms = full ? 42 : 21, far_terms = full ? 30 : 15;
  std::vector<double> near{1}, far{1};
  for (int k = 1; k <= near_terms; ++k) near.push_back(near.back() / (static_cast<double>(k) * (k + n)));
  for (int k = 1; k <= far_terms; ++k) far.push_back(far.back() * ((2.0 * k - 1) * (2.0 * k - 1) - 4 * n * n) / (8.0 * k));
  const V small = at_most(a, far_from), large = at_least(a, far_from), half = small * 0.5;
  V inside = polynomial(half * half, near);
  if (n == 1) inside = inside * half;
  V outside = polynomial(1.0 / large, far) / (sqrt(large) * std::sqrt(2 * 3.14159265358979323846));
  if (scaled)
    inside = inside * exp(-small);
  else
    outside = outside * exp(large);
  return where(a > far_from, outside, inside);
}

V bessel_of(V x, int n, bool scaled) {
  const V wide = convert(x, DType::F64);
  const V y = bessel(abs(wide), n, scaled, !is32(x));
  return convert(n == 1 ? where(wide < 0.0, -y, y) : y, float_dtype(x));
}

}  // namespace

V ndtri(V x) {
  constexpr double kMiddle = 0.425;  // from 1/2
  const V p = convert(x, DType::F64), q = p - 0.5, near = at_least(at_most(q, kMiddle), -kMiddle);
  const V less = where(p > 0.5, 1.0 - p, p);
  // What comes from F32 is normal here.
  const V tail_of = at_most(at_least(less, std::numeric_limits<double>::denorm_min()), 0.5);
  const V r = sqrt(-(is32(x) ? log_of_normal(tail_of) : log(tail_of)));
  const V tail = where(r > 5.0, kFarTail(at_least(r, 5.0) - 5.0), kTail(at_most(r, 5.0) - 1.6));
  const V y = where(abs(q) > kMiddle, where(q < 0.0, -tail, tail), near * kNear(kMiddle * kMiddle - near * near));
  const V whole = where(p == 0.0, -inf(p), where(p == 1.0, inf(p), where((p > 0.0) & (p < 1.0), y, nan(p))));
  return convert(whole, float_dtype(x));
}

V entr(V x) {
  const V wide = convert(x, DType::F64), usual = is_normal(wide), value = -wide * log_where(usual, wide);
  const V ends = where(wide == 0.0, wide.lit(0), where(isnan(wide), wide, wide.lit(-kInf)));
  return convert(where_usually(usual, value, where(wide > 0.0, value, ends)), float_dtype(x));
}

V log_odds(V x) {
  const V usual = (x >= pick(x, 0x1p-126, 0x1p-1022)) & (x < 1.0);  // then the quotient is normal, positive and finite
  return log_where(usual, x / (1.0 - x));
}

V bessel_i0(V x) { return bessel_of(x, 0, false); }
V bessel_i1(V x) { return bessel_of(x, 1, false); }
V bessel_i0e(V x) { return bessel_of(x, 0, true); }
V bessel_i1e(V x) { return bessel_of(x, 1, true); }

}  // namespace naru::ir
