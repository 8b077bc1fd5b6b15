// Logarithms: x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exactly, log(x) = k ln 2 + log(1 + f). Also the inverse hyperbolic functions.
#include "ir/math/detail.h"

namespace naru::ir {
namespace detail {

// (log(1 + f) - f) / f^2
constexpr double kLogF32[] = {-0.5,        0.333333313,  -0.250008225, 0.20001258,   -0.166233525,
                              0.142011583, -0.131595761, 0.127650589,  -0.0764026865};
// (log((1 + s) / (1 - s)) - 2s) / s^3 as a polynomial in s^2
constexpr double kLogF64[] = {0.6666666666666734,  0.39999999999414126, 0.28571428742527816, 0.22222198557218559,
                              0.18183565229664256, 0.15314025693594577, 0.14796214829330581};

V log1p_correction(V f) {
  if (is32(f)) return (f * f) * polynomial(f, kLogF32);
  // With s = f / (2 + f): log(1 + f) = 2s + s z R(z) and 2s = f - s f.
  const V s = f / (f + 2), z = s * s;
  return s * (z * polynomial(z, kLogF64) - f);
}

Scaled normalise(V x) {
  const V i = bits(x);
  const int width = is32(x) ? 23 : 52;
  const V exponent = shr(i - i.lit_bits(is32(x) ? 0x3f3504f3u : 0x3fe6a09e667f3bcdu), width);
  return {small_int_to_float(exponent, x), from_bits(i - shl(exponent, width))};
}

}  // namespace detail

namespace {
using namespace detail;

struct Parts {
  V k, f, c;  // log(x) = k ln 2 + f + c
};
// x must be normal, positive and finite.
Parts parts_of_normal(V x) {
  const auto [k, m] = normalise(x);
  const V f = m - 1;
  return {k, f, log1p_correction(f)};
}
// usual: as for log_where().
Parts parts(V usual, V x) {
  const V tiny = x < pick(x, 0x1p-126, 0x1p-1022);
  const auto [k, f, c] = parts_of_normal(where_usually(usual, x, where(tiny, x * pick(x, 0x1p24, 0x1p54), x)));
  return {where_usually(usual, k, k + where(tiny, x.lit(-pick(x, 24, 54)), 0.0)), f, c};
}

// `value` for positive, finite x; otherwise the special values common to all logarithms.
V with_special(V x, V value) { return where(x > 0.0, where(x < kInf, value, x), where(x == 0.0, x.lit(-kInf), where(x < 0.0, nan(x), x))); }

V natural(const Parts& p) {
  const Split ln2 = pick(p.f, kLn2F32, kLn2F64);
  return fma(p.k, ln2.hi, p.f + fma(p.k, ln2.lo, p.c));
}

// k `per_octave` + (f + c) `factor`, small terms first.
V log_to_base(V x, Split per_octave, Split factor) {
  const V usual = is_normal(x);
  const auto [k, f, c] = parts(usual, x);
  V sum = fma(c, factor.hi, per_octave.lo == 0 ? f * factor.lo : fma(f, factor.lo, k * per_octave.lo));
  sum = fma(f, factor.hi, sum);
  const V value = fma(k, per_octave.hi, sum);
  return where_usually(usual, value, with_special(x, value));
}

}  // namespace

V detail::is_normal(V x) { return (x >= pick(x, 0x1p-126, 0x1p-1022)) & (x < kInf); }
V detail::log_of_normal(V x) { return natural(parts_of_normal(x)); }
V detail::log_where(V usual, V x) {
  const V value = natural(parts(usual, x));
  return where_usually(usual, value, with_special(x, value));
}

V log(V x) { return log_where(is_normal(x), x); }

V log2(V x) {
  return log_to_base(x, {1, 0}, pick(x, Split{0x1.715476p+0, 0x1.4ae0cp-26}, Split{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}));
}

V log10(V x) {
  return log_to_base(x, pick(x, Split{0x1.344136p-2, -0x1.ec10cp-27}, Split{0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59}),
                     pick(x, Split{0x1.bcb7b2p-2, -0x1.5b235ep-27}, Split{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}));
}

V log1p(V x) {
  const V k = normalise(x + 1).k;
  const V down = scale(x.lit(1), -k);
  // (1 + x) / 2^k - 1 = f + f_lo, although 1 + x is not exact.
  const V f = fma(x, down, down - 1), f_lo = fma(x, down, (down - 1) - f);
  const Split ln2 = pick(x, kLn2F32, kLn2F64);
  const V value = fma(k, ln2.hi, f + (f_lo + fma(k, ln2.lo, log1p_correction(f))));
  return where(x == 0.0, x, with_special(x + 1, value));
}

// log(|x| + sqrt(x^2 + 1)), written with log1p; above 2^30 (F64: 2^60) it equals log(2 |x|) to the last bit.
V asinh(V x) {
  const V a = abs(x), square = a * a;
  const V big = a > pick(x, 0x1p30, 0x1p60);
  const V z = where(big, a, a + square / (sqrt(square + 1) + 1));
  const V magnitude = log1p(z) + where(big, x.lit(0.6931471805599453), 0.0);
  return where(a < pick(x, 0x1p-12, 0x1p-27), x, with_sign(magnitude, sign_of(x)));
}

V acosh(V x) {
  const V big = x > pick(x, 0x1p30, 0x1p60);
  const V t = x - 1;
  const V z = where(big, x, t + sqrt(fma(t, t, t + t)));
  return where(x < 1.0, nan(x), log1p(z) + where(big, x.lit(0.6931471805599453), 0.0));
}

// log((1 + |x|) / (1 - |x|)) / 2
V atanh(V x) {
  const V a = abs(x);
  const V twice = a + a;
  const V z = where(a < 0.5, twice + twice * a / (1 - a), twice / (1 - a));
  return where(a < pick(x, 0x1p-12, 0x1p-27), x, with_sign(log1p(z) * 0.5, sign_of(x)));
}

}  // namespace naru::ir
