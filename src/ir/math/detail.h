// Building blocks for the definitions of mathematics. Private to src/ir/math.
//
// All polynomials are our own minimax fits: Remez's exchange on the error relative to the function. Coefficients are rounded to the type one
// after another, lowest first, and the rest is fitted again each time.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "ir/math/math.h"

namespace naru::ir::detail {

inline bool is32(V x) { return x.type() == VType::F32; }
// Selects the constant for this value's type.
inline double pick(V x, double f32, double f64) { return is32(x) ? f32 : f64; }

// A real number as the sum of two numbers of a type.
struct Split {
  double hi, lo;
};
// pi/2, ln 2 ... are written as two halves for each type; see the uses.
inline Split pick(V x, Split f32, Split f64) { return is32(x) ? f32 : f64; }

inline constexpr Split kLn2F32{0x1.62e43p-1, -0x1.05c61p-29}, kLn2F64{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
inline constexpr Split kHalfPiF32{0x1.921fb6p+0, -0x1.777a5cp-25}, kHalfPiF64{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
inline constexpr double kLog2E = 1.4426950408889634, kInf = std::numeric_limits<double>::infinity();
// (2^r - 1) / r, |r| <= 1/2.
inline constexpr double kExp2F32[] = {0.693147242, 0.240226552, 0.0555027239, 0.00961706787, 0.00134178973, 0.000158248062};
inline constexpr double kExp2Short[] = {0.69314718054119318,   0.24022650694734501,    0.055504109593662025,   0.009618129560853575,
                                        0.0013333434038815513, 0.00015403096900401317, 1.5314238006048188e-05, 1.334445646974802e-06};
inline constexpr double kExp2F64[] = {0.69314718055994529,    0.24022650695910072,    0.055504108664821736,   0.0096181291076285619,
                                      0.0013333558146381666,  0.0001540353039317162,  1.5252733864915858e-05, 1.3215487003585603e-06,
                                      1.0178047501261671e-07, 7.0548147828486977e-09, 4.4572438722617689e-10, 2.585528181469166e-11};

inline V inf(V like) { return like.lit(kInf); }
inline V nan(V like) { return like.lit_bits(is32(like) ? 0x7fc00000u : 0x7ff8000000000000u); }

// c[0] + c[1] x + c[2] x^2 ...
inline V polynomial(V x, std::span<const double> c) {
  V sum = x.lit(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}
// Selects the polynomial for this value's type.
inline V polynomial(V x, std::span<const double> f32, std::span<const double> f64) { return polynomial(x, is32(x) ? f32 : f64); }

// x + x^3 p(x^2). Not for -0, which would lose its sign.
inline V odd_polynomial(V x, std::span<const double> f32, std::span<const double> f64) {
  const V square = x * x;
  return fma(polynomial(square, f32, f64), square * x, x);
}

// A number as the sum of two floating-point values, the second below half an ulp of the first.
struct Pair {
  V hi, lo;
};
// a + b, for |a| >= |b| or a = 0.
inline Pair fast_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}
inline Pair exact_product(V a, V b) {
  const V p = a * b;
  return {p, fma(a, b, -p)};
}

// The bits of a float as an integer, and back.
inline V bits(V x) { return bitcast(x, is32(x) ? VType::I32 : VType::I64); }
inline V from_bits(V i) { return bitcast(i, i.type() == VType::I32 ? VType::F32 : VType::F64); }
inline uint64_t sign_bit(V x) { return is32(x) ? 0x80000000u : 0x8000000000000000u; }

// The sign bit of x, as an integer.
inline V sign_of(V x) {
  const V i = bits(x);
  return i & i.lit_bits(sign_bit(x));
}
// magnitude >= 0 (or NaN), with the given sign.
inline V with_sign(V magnitude, V sign) { return from_bits(bits(magnitude) | sign); }
inline V flip_sign(V x, V sign) { return from_bits(bits(x) ^ sign); }

// 2^(r.hi + r.lo + n) for F32, rounded once, to 0.6 ulp; n is an integer, |n| <= 250, and -0.4 <= r <= 0.6, where rounding errors are worth least
// in ulp (kAboveHalf: n = round(t - kAboveHalf)).
inline constexpr double kAboveHalf = 0.1;
V exp2_scaled(Pair r, V n);

// Clamps below (above); NaN stays NaN.
inline V at_least(V x, double lo) { return prim_max(x.lit(lo), x); }
inline V at_most(V x, double hi) { return prim_min(x.lit(hi), x); }

inline DType float_dtype(V x) { return is32(x) ? DType::F32 : DType::F64; }
// A small integer as a float of the type of `like`.
inline V small_int_to_float(V i, V like) { return convert(i.type() == VType::I64 ? convert(i, DType::I32) : i, float_dtype(like)); }

// log(1 + f) = f + c with f in [sqrt(1/2) - 1, sqrt(2) - 1].
V log1p_correction(V f);
// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for normal, positive, finite x.
struct Scaled {
  V k;  // a float with an integral value
  V m;
};
Scaled normalise(V x);

// Whether x is normal, positive and finite: logarithms and powers of other numbers need more.
V is_normal(V x);
// log(x) for x that are so, with its bits; anything for others.
V log_of_normal(V x);
// log(x); where `usual`, a condition that is cheap to ask, x must be normal, positive and finite.
V log_where(V usual, V x);

// |x| = quadrant pi/2 + hi + lo. The quadrant (I32) is modulo 4, and |hi| <= pi/4, up to rounding; NaN for infinite x.
struct Angle {
  V quadrant, hi, lo;
};
Angle reduce_angle(V x);

// sin and cos of t quarter turns, |t| <= 1/2.
V sin_of_quarters(V t);
V cos_of_quarters(V t);
// cos(2 pi v), 0 <= v <= 1.
V cos_of_turn(V v);
// Whether a bit of an integer is set.
inline V bit_set(V i, int bit) { return (i & i.lit_bits(uint64_t{1} << bit)) != i.lit(0); }

}  // namespace naru::ir::detail
