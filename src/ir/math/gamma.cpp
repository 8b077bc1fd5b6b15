// log |gamma|, its derivative and the Hurwitz zeta function, in F64. F32 also goes through F64, because the formulas cancel near zeros.
#include "ir/math/detail.h"

namespace naru::ir {
namespace {
using namespace detail;

// lgamma(y) / ((y - 1) (y - 2)) as a polynomial in y - 3/2, 0.75 <= y <= 2.25.
constexpr double kLgamma[] = {0.48312895054098087,     -0.14595989591430605,    0.062911401074567122,   -0.031308487501019291,
                              0.016797098630937611,    -0.0094256224478692155,  0.0054464578557177458,  -0.0032120740974785574,
                              0.0019229158797840638,   -0.0011644140868461805,  0.00071152588832867306, -0.00043799975434882083,
                              0.00027124444667285205,  -0.00016885740916453381, 0.00010582200572813732, -6.6516558461313433e-05,
                              4.0942979046358621e-05,  -2.5614755087690283e-05, 1.9173299718835218e-05, -1.2767840083843271e-05,
                              1.8136187958814976e-06,  -2.4218420479835149e-07, 9.4603061078646683e-06, -6.9801551673901749e-06,
                              -4.4903814379729492e-06, 3.4295083891791587e-06,  2.8816199485112594e-06, -1.9987577517020433e-06};
// (lgamma(x) - (x - 1/2) (log(x) - 1) - (log(2 pi) - 1) / 2) x as a polynomial in 1/x^2, x >= 8: Stirling's series,
// economised.
constexpr double kStirling[] = {0.083333333333333329,  -0.002777777777767435,  0.00079365078641002393, -0.00059523585329021545,
                                0.0008413922762089027, -0.0018864069936053653, 0.0049877367361967117};
// (log(x) - digamma(x) - 1/2x) x^2 as a polynomial in 1/x^2, x >= 10.
constexpr double kDigamma[] = {0.08333333333333276,    -0.0083333333322179615, 0.0039682532396715453,
                               -0.0041664471647546875, 0.0075420907849233455,  -0.018506667046295659};

constexpr double kPi = 3.141592653589793;

// |sin(pi x)| and |cos(pi x)|
struct SinCosPi {
  V sin, cos;
};
SinCosPi sin_cos_pi(V x) {
  const V t = abs(x - round(x)) * 2;  // quarter turns, exact, at most 1
  const V steep = t > 0.5;
  const V u = where(steep, 1 - t, t);
  const V s = sin_of_quarters(u), c = cos_of_quarters(u);
  return {where(steep, c, s), where(steep, s, c)};
}

// x > 0; usual: x is normal and finite
V lgamma_positive(V usual, V x) {
  // (0, 0.75): lgamma(x + 1) - log(x). [2.25, 8): recurrence down to [1.25, 2.25), multiplying the factors. From 8: Stirling.
  const V below = x < 0.75, big = x >= 8.0;
  V y = where(below, x + 1, where(big, x.lit(1.5), x));
  V factors = where(below | big, x, 1.0);
  for (int step = 0; step < 6; ++step) {
    const V above = y >= 2.25;
    const V lower = y - 1;
    factors = where(above, factors * lower, factors);
    y = where(above, lower, y);
  }
  const V l = log_where(usual, factors);
  const V near = (y - 1) * (y - 2) * polynomial(y - 1.5, kLgamma);
  const V inverse = 1 / x;
  const V far = fma(x - 0.5, l - 1, fma(polynomial(inverse * inverse, kStirling), inverse, 0.41893853320467274));
  return where(big, far, where(below, near - l, near + l));
}

V lgamma_wide(V x) {
  // Most arguments are positive: then half of the work can be left out.
  const V a = abs(x), usual = is_normal(x);
  const V reflect = x < -0x1p-60;
  // x < 0: log(pi / |sin(pi x)|) - lgamma(1 - x). For tiny |x|, both signs give -log |x|.
  const V positive = lgamma_positive(usual, where_usually(usual, x, where(reflect, 1 - x, a)));
  const V s = sin_cos_pi(x).sin;
  const V reflected = where(s > 0.0, log(kPi / s) - positive, inf(x));
  return where_usually(usual, positive, where(a < kInf, where(reflect, reflected, positive), a));
}

V digamma_wide(V x) {
  // x < 0: digamma(1 - x) - pi cot(pi x)
  const V reflect = x < 0.0;
  const V positive = where(reflect, 1 - x, x);
  // digamma(x) = digamma(x + 10) - sum of 1/(x + k), k < 10, computed as one fraction.
  const V low = positive < 10.0;
  V numerator = x.lit(1), denominator = positive, term = positive;
  for (int k = 1; k < 10; ++k) {
    term = positive + k;
    numerator = fma(numerator, term, denominator);
    denominator = denominator * term;
  }
  const V y = where(low, positive + 10, positive);
  const V inverse = 1 / y, z = inverse * inverse;
  const V series = log_of_normal(y) - fma(z, polynomial(z, kDigamma), inverse * 0.5);
  const V value = where(low, series - numerator / denominator, series);
  const auto [s, c] = sin_cos_pi(x);
  const V r = x - round(x);
  const V cot = flip_sign(c / s, sign_of(r));  // |r| <= 1/2
  const V reflected = fma(cot, -kPi, value);
  const V finite = where(reflect, where(r == 0.0, nan(x), reflected), value);
  return where(x == 0.0, flip_sign(inf(x), sign_of(-x)), where(x < kInf, finite, x));
}

// B(2j) / (2j)!
constexpr double kEulerMaclaurin[] = {0.083333333333333333,   -0.0013888888888888889,  3.306878306878307e-05,
                                      -8.267195767195767e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
                                      1.3382536530684679e-11, -3.3896802963225829e-13, 8.5860620562778446e-15};

// q > -3: twelve terms, and the Euler-Maclaurin formula for the rest.
V zeta_sum(V s, V q) {
  constexpr int kTerms = 12;
  V sum = pow(q, -s);
  for (int k = 1; k < kTerms; ++k) sum = sum + pow(q + k, -s);
  const V a = q + kTerms, w = pow(a, -s), inverse = 1 / a, square = inverse * inverse;
  V rest = w * a / (s - 1) + w * 0.5, factor = s * w * inverse;
  for (int j = 0; j < 9; ++j) {
    rest = fma(factor, s.lit(kEulerMaclaurin[j]), rest);
    factor = factor * (s + (2 * j + 1)) * (s + (2 * j + 2)) * square;
  }
  return sum + rest;
}

V zeta_wide(V s, V q) {
  // zeta(2, q) = (pi / sin(pi q))^2 - zeta(2, 1 - q), and its derivative with respect to q: zeta(3, q) = (pi / sin(pi q))^3 cos(pi q) + zeta(3, 1
  // - q)
  const V third = s == 3.0;
  const V reflect = ((s == 2.0) | third) & (q < 0.5);
  const V sum = zeta_sum(s, where(reflect, 1 - q, q));
  const SinCosPi turn = sin_cos_pi(q);
  const V r = kPi / turn.sin, square = r * r;
  // turn.sin and turn.cos are magnitudes; the product of cube and cosine has the sign of the cotangent.
  const V cosine = flip_sign(turn.cos, sign_of(q - round(q)));
  const V value = where(reflect, where(third, fma(square, r * cosine, sum), fma(r, r, -sum)), sum);
  const V known = reflect | (q > -3.0);
  const V pole = (q <= 0.0) & (q == floor(q));
  const V finite = where(pole, inf(q), where(known, value, nan(q)));
  return where(s > 1.0, where(q < kInf, finite, where(q == kInf, q.lit(0), q)), where(s == 1.0, inf(s), nan(s)));
}

V through_f64(V x, V (*f)(V)) { return convert(f(convert(x, DType::F64)), float_dtype(x)); }

}  // namespace

V lgamma(V x) { return through_f64(x, lgamma_wide); }
V digamma(V x) { return through_f64(x, digamma_wide); }
V zeta(V s, V q) { return convert(zeta_wide(convert(s, DType::F64), convert(q, DType::F64)), float_dtype(q)); }

}  // namespace naru::ir
