// Powers: x^y = 2^(y log2 |x|), the logarithm with many more bits than the result, then C's special cases.
#include "ir/math/detail.h"

namespace naru::ir {
namespace {
using namespace detail;

// (log((1 + s) / (1 - s)) - 2s) / s^3 as a polynomial in s^2, to 2^-45.
constexpr double kLogShort[] = {0.66666666675807162, 0.39999995619703932, 0.28572109392070932, 0.22176178585159018, 0.19584302021297881};
// (log((1 + s) / (1 - s)) / 2s - 1 - s^2/3) / s^4 as a polynomial in s^2.
constexpr double kLogLong[] = {0.20000000000001128,  0.14285714285049281,  0.11111111260050754, 0.090908921757673872,
                               0.076933790263547699, 0.066284003899150595, 0.065982441481506046};

// A number as the sum of two floating-point values, the second below half an ulp of the first.
struct Pair {
  V hi, lo;
};
// For |a| >= |b| or a = 0.
Pair fast_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}
Pair product(V a, V b) {
  const V p = a * b;
  return {p, fma(a, b, -p)};
}

// log2's results for 0 and infinity, where the formulas do not hold.
V with_ends(V a, V log) { return where(a == 0.0, a.lit(-kInf), where(a < kInf, log, a)); }

// log2(a) with a relative error below 2^-44; a is F64 and holds an F32 value.
V log2_short(V a) {
  const auto [k, m] = normalise(a);
  const V f = m - 1, s = f / (f + 2), z = s * s;
  return with_ends(a, fma(f - s * (f - z * polynomial(z, kLogShort)), kLog2E, k));
}

// log2(a) with about 64 bits.
Pair log2_long(V a) {
  const V tiny = a < 0x1p-1022;
  auto [k, m] = normalise(where(tiny, a * 0x1p54, a));
  k = k + where(tiny, a.lit(-54), 0.0);
  // s = f / (2 + f); log(m) = 2 (s + s t) with t = z/3 + z^2 T(z), z = s^2.
  const V f = m - 1;
  const V d = f + 2, d_lo = f - (d - 2);
  const V inverse = 1 / d;
  const V s = f * inverse, s_lo = (fma(-s, d, f) - s * d_lo) * inverse;
  const auto [z, z_error] = product(s, s);
  const V z_lo = fma(s + s, s_lo, z_error);
  const double third = 0x1.5555555555555p-2, third_lo = 0x1.5555555555555p-56;
  const auto [p, p_error] = product(z, z.lit(third));
  const V p_lo = p_error + fma(z, third_lo, z_lo * third);
  const auto [t, t_error] = fast_sum(p, z * z * polynomial(z, kLogLong));
  const V t_lo = t_error + p_lo;
  const auto [u, u_error] = product(s, t);
  const V u_lo = u_error + fma(s, t_lo, s_lo * t);
  const auto [v, v_error] = fast_sum(s, u);
  const V v_lo = v_error + (s_lo + u_lo);
  // Multiply by 2 / ln 2 and add k.
  const double factor = 0x1.71547652b82fep+1, factor_lo = 0x1.777d0ffda0d24p-55;
  const auto [w, w_error] = product(v, v.lit(factor));
  const V w_lo = w_error + fma(v, factor_lo, v_lo * factor);
  const auto [hi, error] = fast_sum(k, w);
  return {with_ends(a, hi), error + w_lo};
}

// |x|^y for F64 values.
V magnitude_long(V a, V y) {
  const Pair l = log2_long(a);
  const V t = where(a == 1.0, 0.0, y * l.hi);
  const V n = round(at_most(at_least(t, -1100), 1100));
  // Where t is out of range, the result is too, whatever r is. 1 to any power has no remainder.
  const V r = where((abs(t) < 1090.0) & (a != 1.0), (t - n) + fma(y, l.lo, fma(y, l.hi, -t)), 0.0);
  const V value = scale(fma(polynomial(r, kExp2F64), r, 1.0), n);
  return where(isnan(t), t, value);
}

// |x|^y in F64, for F32 results.
V magnitude_short(V a, V y) {
  const V t = at_most(at_least(where(a == 1.0, 0.0, y * log2_short(a)), -200), 200);
  const V n = round(t), r = t - n;
  return scale(fma(polynomial(r, kExp2Short), r, 1.0), n);
}

}  // namespace

V pow(V x, V y) {
  const V a = abs(x);
  const V magnitude = is32(x) ? convert(magnitude_short(convert(a, DType::F64), convert(y, DType::F64)), DType::F32) : magnitude_long(a, y);
  // The sign of x is kept if y is an odd integer. A negative finite number has no real powers except integer ones.
  const V whole = floor(y) == y, half = y * 0.5;
  const V odd = whole & (floor(half) != half);
  const V sign = sign_of(x);
  const V value = flip_sign(magnitude, where(odd, sign, sign.lit(0)));
  const V defined = where((x < 0.0) & (x > -kInf) & ~whole, nan(x), value);
  return where((x == 1.0) | (y == 0.0), 1.0, defined);
}

}  // namespace naru::ir
