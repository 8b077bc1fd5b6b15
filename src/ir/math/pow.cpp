// Powers: x^y = 2^(y log2 |x|), the logarithm with many more bits than the result, then C's special cases.
#include "ir/math/detail.h"

namespace naru::ir {
namespace {
using namespace detail;

// (log((1 + s) / (1 - s)) / 2s - 1 - s^2/3) / s^4 as a polynomial in s^2.
constexpr double kLogF32[] = {0.200000763, 0.142735437, 0.117098913};
constexpr double kLogF64[] = {0.20000000000001128,  0.14285714285049281,  0.11111111260050754, 0.090908921757673872,
                              0.076933790263547699, 0.066284003899150595, 0.065982441481506046};

// x is positive, normal and finite: what other numbers need can be left out.
struct Base {
  V x, usual;
};

// log2 |x| with about 64 bits (F64), 36 bits (F32).
Pair log2_long(const Base& base) {
  const V a = abs(base.x), tiny = a < pick(a, 0x1p-126, 0x1p-1022);
  auto [k, m] = normalise(where_usually(base.usual, a, where(tiny, a * pick(a, 0x1p24, 0x1p54), a)));
  k = where_usually(base.usual, k, k + where(tiny, a.lit(-pick(a, 24, 54)), 0.0));
  // s = f / (2 + f); log(m) = 2 (s + s t) with t = z/3 + z^2 T(z), z = s^2. Products are negated (p, u, w), as the fma for their error needs them.
  const V f = m - 1;
  const V d = f + 2, d_lo = f - (d - 2);
  const V inverse = 1 / d;
  const V s = f * inverse, minus_s = -s, s_lo = fma(minus_s, d_lo, fma(minus_s, d, f)) * inverse;
  const auto [z, z_error] = exact_product(s, s);
  const V z_lo = fma(s + s, s_lo, z_error);
  const Split third = pick(a, Split{0x1.555556p-2, -0x1.555556p-27}, Split{0x1.5555555555555p-2, 0x1.5555555555555p-56});
  const V p = z * -third.hi, p_lo = fma(z, third.hi, p) + fma(z, third.lo, z_lo * third.hi);
  const V tail = z * z * polynomial(z, kLogF32, kLogF64);
  const V t = tail - p, t_lo = (tail - (t + p)) + p_lo;
  const V u = minus_s * t, u_lo = fma(s, t, u) + fma(s, t_lo, s_lo * t);
  const V v = s - u, v_lo = (s_lo + u_lo) - (u + (v - s));
  // Multiply by 2 / ln 2 and add k.
  const Split factor = pick(a, Split{0x1.715476p+1, 0x1.4ae0cp-25}, Split{0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55});
  const V w = v * -factor.hi, w_lo = fma(v, factor.hi, w) + fma(v, factor.lo, v_lo * factor.hi);
  const V hi = k - w;
  const V ends = where(a == 0.0, a.lit(-kInf), where(a < kInf, hi, a));
  return {where_usually(base.usual, hi, ends), w_lo - (w + (hi - k))};
}

// |x|^y.
V magnitude(const Base& base, V y) {
  const Pair l = log2_long(base);
  const V exact = y * l.hi, t = at_most(at_least(exact, pick(y, -200, -1100)), pick(y, 129, 1100));
  // Where t is limited, the result is infinite or zero for any remainder.
  const V rest = where(t == exact, fma(y, l.lo, fma(y, l.hi, -t)), 0.0);
  if (is32(y)) {
    const V n = round(t - kAboveHalf);
    const V r = t - n, lost = t - (r + n);
    return exp2_scaled(fast_sum(r, lost + rest), n);
  }
  const V n = round(t), r = (t - n) + rest;
  return where(isnan(t), t, scale(fma(polynomial(r, kExp2F64), r, 1.0), n));
}

}  // namespace

V pow(V x, V y) {
  const V usual = is_normal(x);
  const V size = magnitude({x, usual}, y);
  // The sign of x is kept if y is an odd integer. A negative finite number has no real powers except integer ones.
  const V whole = floor(y) == y, half = y * 0.5;
  const V odd = whole & (floor(half) != half);
  const V sign = sign_of(x);
  const V value = flip_sign(size, where(odd, sign, sign.lit(0)));
  const V defined = where((x < 0.0) & (x > -kInf) & ~whole, nan(x), value);
  // (-1)^±inf is 1, too.
  const V one = (y == 0.0) | ((x == -1.0) & (abs(y) == kInf));
  return where(x == 1.0, 1.0, where_usually(usual, size, where(one, 1.0, defined)));
}

}  // namespace naru::ir
