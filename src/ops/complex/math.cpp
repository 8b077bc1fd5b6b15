#include "ops/complex/math.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "naru/ops.h"

namespace naru::ops {
namespace {

using P = const Pair&;
using Pairs = std::span<const Pair>;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.6931471805599453, kHalfPi = 1.5707963267948966;

Pair choose(const Tensor& condition, P a, P b) { return {where(condition, a.re, b.re), where(condition, a.im, b.im)}; }
Pair times(P a, P b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Pair plus(P a, P b) { return {a.re + b.re, a.im + b.im}; }
Pair minus(P a, P b) { return {a.re - b.re, a.im - b.im}; }
Pair negative(P a) { return {-a.re, -a.im}; }
Pair scaled(P a, double s) { return {a.re * s, a.im * s}; }
Pair plus_one(P a) { return {a.re + 1.0, a.im}; }
Pair one_minus(P a) { return {1.0 - a.re, -a.im}; }
// i z and -i z, to convert between hyperbolic and circular functions.
Pair turned(P a) { return {-a.im, a.re}; }
Pair turned_back(P a) { return {a.im, -a.re}; }
Tensor magnitude(P a) { return hypot(a.re, a.im); }
Tensor is_infinite(P a) { return isinf(a.re) | isinf(a.im); }
Tensor is_zero(P a) { return (a.re == 0.0) & (a.im == 0.0); }
Tensor not_finite(const Tensor& t) { return ~isfinite(t); }

// Smith's method: divide by the part of the divisor with the greater magnitude, so that no square overflows.
Pair over(P a, P b) {
  const Tensor first = abs(b.re) >= abs(b.im);
  const Tensor great = where(first, b.re, b.im), small = where(first, b.im, b.re);
  const Tensor ratio = small / great, divisor = great + small * ratio;
  const Pair quotient{where(first, a.re + a.im * ratio, a.re * ratio + a.im) / divisor,
                      where(first, a.im - a.re * ratio, a.im * ratio - a.re) / divisor};
  // Division by zero: divide each part by the magnitude.
  return choose(is_zero(b), {a.re / abs(great), a.im / abs(great)}, quotient);
}
Pair inverse(P a) {
  const Tensor one = ones_like(a.re);
  return over({one, zeros_like(a.re)}, a);
}

Pair exponential(P a) {
  const Tensor e = exp(a.re), wild = not_finite(a.im);
  Pair r{e * cos(a.im), where(a.im == 0.0, a.im, e * sin(a.im))};
  r = choose((a.re == -kInfinity) & wild, {copysign(zeros_like(a.re), r.re), zeros_like(a.re)}, r);
  return {where((a.re == kInfinity) & wild, kInfinity, r.re), r.im};
}

// The rounding error of x * x, exactly (Dekker's product): split x into halves whose products have few enough bits to be exact.
Tensor rest_of_square(const Tensor& x, const Tensor& square) {
  const Tensor c = x * (x.dtype() == DType::F64 ? 0x1p27 + 1 : 0x1p12 + 1), high = c - (c - x), low = x - high;
  return (high * high - square) + high * low * 2.0 + low * low;
}
// first + a.re * a.re + a.im * a.im. The terms may cancel, so the rounding errors of the squares and of the first sum are added at the end.
Tensor with_squares(const Tensor& first, P a) {
  const Tensor p = a.re * a.re, q = a.im * a.im, sum = first + p;
  if (size_of(p.dtype()) == 2) return sum + q;
  const Tensor back = sum - first, lost = (first - (sum - back)) + (p - back);
  return (sum + q) + (lost + (rest_of_square(a.re, p) + rest_of_square(a.im, q)));
}

// log |z|; uses log1p near |z| = 1.
Tensor log_magnitude(P a) {
  const Tensor x = abs(a.re), y = abs(a.im), h = hypot(x, y);
  const Tensor near = (h > 0.5) & (h < 2.0);
  return where(near, log1p(with_squares(full_like(x, -1.0), {maximum(x, y), minimum(x, y)})) * 0.5, log(h));
}
Pair logarithm(P a) { return {log_magnitude(a), atan2(a.im, a.re)}; }

Pair root(P a) {
  // Scale each part by 1/4, so that their sum does not overflow.
  const Tensor x = abs(a.re) * 0.25;
  const Tensor t = sqrt((x + hypot(x, a.im * 0.25)) * 0.5) * 2.0, other = a.im / (t * 2.0);
  Pair r = choose(a.re >= 0.0, {t, other}, {abs(other), copysign(t, a.im)});
  r = choose(is_zero(a), {zeros_like(t), a.im}, r);
  r = choose(isnan(a.re), {a.re, a.re + a.im}, r);
  return choose(isinf(a.im), {abs(a.im), a.im}, r);
}

Pair hyperbolic_sine(P a) {
  const Tensor wild = not_finite(a.im);
  const Tensor re = where(a.re == 0.0, a.re, where(isinf(a.re) & wild, a.re, sinh(a.re) * cos(a.im)));
  return {re, where(a.im == 0.0, a.im, cosh(a.re) * sin(a.im))};
}
Pair hyperbolic_cosine(P a) {
  const Tensor wild = not_finite(a.im), on_axis = (a.re == 0.0) | (a.im == 0.0);
  const Tensor re = where(isinf(a.re) & wild, kInfinity, cosh(a.re) * cos(a.im));
  return {re, where(on_axis, copysign(zeros_like(a.re), a.re) * copysign(ones_like(a.im), a.im), sinh(a.re) * sin(a.im))};
}
// Kahan's formula. If |a.re| > 20, only the sign of the real part matters in float32 and float64.
Pair hyperbolic_tangent(P a) {
  const Tensor far = abs(a.re) > 20.0, x = where(far, 0.0, a.re);
  const Tensor t = tan(a.im), beta = t * t + 1.0, s = sinh(x), divisor = beta * s * s + 1.0;
  const Pair near{beta * sqrt(s * s + 1.0) * s / divisor, t / divisor};
  const Tensor tail = sin(a.im) * cos(a.im) * exp(abs(a.re) * -2.0) * 4.0;
  const Tensor bound = where(isinf(a.re) & not_finite(a.im), 0.0, tail);
  const Tensor side = where(isfinite(a.re) & not_finite(a.im), kNaN, copysign(ones_like(a.re), a.re));
  return choose(far, {side, bound}, {where((a.re == 0.0), a.re, near.re), where(a.im == 0.0, a.im, near.im)});
}

// Kahan's inverse functions, from square roots of 1 - z and 1 + z. At infinity the real part is the angle of (x, y), and the imaginary part is
// infinite. A real part of 0 with a NaN imaginary part stays 0.
Tensor on_axis(P a) { return (a.re == 0.0) & isnan(a.im); }
Pair arc_sine(P a) {
  const Pair minus_root = root(one_minus(a)), plus_root = root(plus_one(a));
  const Pair r{atan2(a.re, minus_root.re * plus_root.re - minus_root.im * plus_root.im),
               asinh(minus_root.re * plus_root.im - minus_root.im * plus_root.re)};
  return choose(is_infinite(a), {atan2(a.re, abs(a.im)), copysign(full_like(a.im, kInfinity), a.im)},
                {where(on_axis(a), a.re, r.re), where((a.im == 0.0) & (abs(a.re) <= 1.0), a.im, r.im)});
}
Pair arc_cosine(P a) {
  const Pair minus_root = root(one_minus(a)), plus_root = root(plus_one(a));
  const Pair r{atan2(minus_root.re, plus_root.re) * 2.0, asinh(plus_root.re * minus_root.im - plus_root.im * minus_root.re)};
  return choose(is_infinite(a), {atan2(abs(a.im), a.re), -copysign(full_like(a.im, kInfinity), a.im)},
                {where(on_axis(a), kHalfPi, r.re), r.im});
}
Pair arc_hyperbolic_cosine(P a) {
  const Pair minus_root = root({a.re - 1.0, a.im}), plus_root = root(plus_one(a));
  const Pair r{asinh(minus_root.re * plus_root.re + minus_root.im * plus_root.im), atan2(minus_root.im, plus_root.re) * 2.0};
  return choose(is_infinite(a), {full_like(a.re, kInfinity), atan2(a.im, a.re)}, {r.re, where(on_axis(a), kHalfPi, r.im)});
}
Pair arc_hyperbolic_sine(P a) { return turned_back(arc_sine(turned(a))); }
Pair arc_hyperbolic_tangent(P a) {
  const Tensor x = abs(a.re), gap = 1.0 - x;
  const Tensor re = copysign(log1p(x * 4.0 / (gap * gap + a.im * a.im)) * 0.25, a.re);
  const Tensor im = atan2(a.im * 2.0, gap * (x + 1.0) - a.im * a.im) * 0.5;
  const double far = 1e17;
  const Tensor distant = (x > far) | (abs(a.im) > far);
  // a.re / |a|^2, without the square.
  const Tensor h = hypot(a.re, a.im), rest = copysign(where(is_infinite(a), 0.0, a.re / h / h), a.re);
  return choose(distant, {rest, where(isnan(a.im), a.im, copysign(full_like(a.im, kHalfPi), a.im))},
                {where(a.re == 0.0, a.re, re), where((a.im == 0.0) & (x < 1.0), a.im, im)});
}

Pair exponential_minus_one(P a) {
  const Tensor s = sin(a.im * 0.5);
  return {expm1(a.re) * cos(a.im) - s * s * 2.0, where(a.im == 0.0, a.im, exp(a.re) * sin(a.im))};
}
Pair logarithm_plus_one(P a) {
  const Pair b = plus_one(a);
  const Tensor square = with_squares(a.re * 2.0, {a.im, a.re}), small = abs(square) < 1.0;
  const Tensor re = where(small, log1p(square) * 0.5, log_magnitude(b));
  return {where(isnan(a.re) | isnan(a.im), kNaN, re), atan2(a.im, b.re)};
}

// exp(b log a). For a = 0: 1, 0 or NaN, depending on the exponent.
Pair power(P a, P b) {
  const Tensor zero = is_zero(a), to_zero = is_zero(b);
  const Pair r = exponential(times(b, logarithm(a)));
  const Tensor at_zero = where(b.re > 0.0, 0.0, kNaN);
  return choose(to_zero, {ones_like(r.re), zeros_like(r.im)}, choose(zero, {where(zero, at_zero, r.re), where(zero, at_zero, r.im)}, r));
}

// log(exp(a) + exp(b)): factor out the operand with the greater real part.
Pair log_of_sum(P a, P b) {
  const Tensor first = a.re >= b.re, alike = (a.re == b.re) & (a.im == b.im) & isinf(a.re);
  const Pair great = choose(first, a, b), less = choose(first, b, a);
  return choose(alike, a, plus(great, logarithm_plus_one(exponential(minus(less, great)))));
}
Pair sigmoid_of(P a) { return inverse(plus_one(exponential(negative(a)))); }
Pair square_of(P a) { return times(a, a); }
Pair soft_sign(P a) {
  const Tensor m = magnitude(a) + 1.0;
  return {a.re / m, a.im / m};
}

template <Pair F(P)>
Pair one(Pairs p) {
  return F(p[0]);
}
template <Pair F(P, P)>
Pair two(Pairs p) {
  return F(p[0], p[1]);
}

struct Row {
  ir::OpId id;
  PairFunction function;
};
namespace o = ir::op;
constexpr bool kHalf = true;
constexpr Row kRows[] = {
    {o::copy, {[](Pairs p) { return p[0]; }, nullptr, kHalf}},
    {o::positive, {[](Pairs p) { return p[0]; }, nullptr, kHalf}},
    {o::where, {[](Pairs p) { return choose(p[0].re, p[1], p[2]); }, nullptr, kHalf}},
    {o::add, {two<plus>, nullptr, kHalf}},
    {o::sub, {two<minus>, nullptr, kHalf}},
    {o::mul, {two<times>, nullptr, kHalf}},
    {o::div, {two<over>}},
    {o::add_scaled, {[](Pairs p) { return plus(p[0], times(p[2], p[1])); }, nullptr, kHalf}},
    {o::lerp, {[](Pairs p) { return plus(p[0], times(p[2], minus(p[1], p[0]))); }}},
    {o::logaddexp, {two<log_of_sum>}},
    {o::neg, {one<negative>, nullptr, kHalf}},
    {o::pow, {two<power>}},
    {o::square, {one<square_of>}},
    {o::power_3, {[](Pairs p) { return times(times(p[0], p[0]), p[0]); }}},
    {o::reciprocal, {one<inverse>}},
    {o::sqrt, {one<root>}},
    {o::rsqrt, {[](Pairs p) { return inverse(root(p[0])); }}},
    {o::exp, {one<exponential>}},
    {o::exp2, {[](Pairs p) { return exponential(scaled(p[0], kLn2)); }}},
    {o::expm1, {one<exponential_minus_one>}},
    {o::log, {one<logarithm>}},
    {o::log2, {[](Pairs p) { return scaled(logarithm(p[0]), 1 / kLn2); }}},
    {o::log10, {[](Pairs p) { return scaled(logarithm(p[0]), 0.4342944819032518); }}},
    {o::log1p, {one<logarithm_plus_one>}},
    {o::sin, {[](Pairs p) { return turned_back(hyperbolic_sine(turned(p[0]))); }}},
    {o::cos, {[](Pairs p) { return hyperbolic_cosine(turned(p[0])); }}},
    {o::tan, {[](Pairs p) { return turned_back(hyperbolic_tangent(turned(p[0]))); }}},
    {o::sinh, {one<hyperbolic_sine>}},
    {o::cosh, {one<hyperbolic_cosine>}},
    {o::tanh, {one<hyperbolic_tangent>}},
    {o::asin, {one<arc_sine>}},
    {o::acos, {one<arc_cosine>}},
    {o::atan, {[](Pairs p) { return turned_back(arc_hyperbolic_tangent(turned(p[0]))); }}},
    {o::asinh, {one<arc_hyperbolic_sine>}},
    {o::acosh, {one<arc_hyperbolic_cosine>}},
    {o::atanh, {one<arc_hyperbolic_tangent>}},
    {o::sigmoid, {one<sigmoid_of>}},
    {o::silu, {[](Pairs p) { return times(p[0], sigmoid_of(p[0])); }}},
    {o::softsign, {one<soft_sign>}},
    {o::abs, {nullptr, [](Pairs p) { return magnitude(p[0]); }, kHalf}},
    {o::eq, {nullptr, [](Pairs p) { return (p[0].re == p[1].re) & (p[0].im == p[1].im); }, kHalf}},
    {o::ne, {nullptr, [](Pairs p) { return (p[0].re != p[1].re) | (p[0].im != p[1].im); }, kHalf}},
    {o::isnan, {nullptr, [](Pairs p) { return isnan(p[0].re) | isnan(p[0].im); }, kHalf}},
    {o::isinf, {nullptr, [](Pairs p) { return is_infinite(p[0]); }, kHalf}},
    {o::isfinite, {nullptr, [](Pairs p) { return isfinite(p[0].re) & isfinite(p[0].im); }, kHalf}},
};

}  // namespace

PairFunction pair_function(ir::OpId id) noexcept {
  for (const Row& r : kRows)
    if (r.id == id) return r.function;
  return {};
}

}  // namespace naru::ops
