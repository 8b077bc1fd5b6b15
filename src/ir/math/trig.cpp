// Sine, cosine and tangent: a reduction to [-pi/4, pi/4] and a quadrant, then a polynomial.
#include "ir/math/detail.h"

namespace naru::ir {
namespace detail {
namespace {

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 as polynomials in r^2, |r| <= pi/4.
constexpr double kSinF32[] = {-0.166666552, 0.00833218731, -0.000195179033};
constexpr double kSinF64[] = {-0.1666666666666663,    0.0083333333333220037,   -0.00019841269829494747,
                              2.7557313587471785e-06, -2.5050742296028431e-08, 1.5895904498001539e-10};
constexpr double kCosF32[] = {0.0416666456, -0.00138873095, 2.44323237e-05};
constexpr double kCosF64[] = {0.041666666666666595,    -0.00138888888888729,   2.4801587288750843e-05,
                              -2.7557314149320853e-07, 2.0875696659737675e-09, -1.1358314685264738e-11};
// (sin(r) - r) / r^3 to 2^-32, for the tangent of F32: the first coefficient, and the polynomial behind it.
constexpr double kSinThird = -0.166666672;
constexpr double kSinRest[] = {0.0083333794, -0.000198530659, 2.8325469e-06};
// sin(pi/2 t) / t and (cos(pi/2 t) - 1) / t^2 as polynomials in t^2, |t| <= 1/2.
constexpr double kSinTurnF32[] = {1.57079637, -0.645966649, 0.0797125176, -0.00468592858};
constexpr double kSinTurnF64[] = {1.5707963267948966,     -0.64596409750624628,    0.079692626246166923,   -0.0046817541353147314,
                                  0.00016044118472557052, -3.5988427106505288e-06, 5.6919259513810081e-08, -6.627406692751889e-10};
constexpr double kCosTurnF32[] = {-1.23370051, 0.253668547, -0.0208555963, 0.000894486206};
constexpr double kCosTurnF64[] = {-1.2337005501361697,     0.25366950790104803,    -0.020863480763352919,   0.00091926027483854112,
                                  -2.5202042362734015e-05, 4.7108740753188797e-07, -6.3863245080345998e-09, 6.5065271333177887e-11};

// The quadrant's second bit as a sign bit for values like `like`.
V half_turn_sign(V quadrant, V like) {
  const V sign = shl(quadrant, 30) & quadrant.lit_bits(0x80000000u);
  return is32(like) ? sign : shl(convert(sign, DType::I64), 32);
}

struct SinCos {
  V sin, cos;
};
SinCos sin_cos_core(V hi, V lo) {
  const V z = hi * hi;
  const V half = z * 0.5, w = 1 - half;
  const V sin = hi + fma(hi * z, polynomial(z, kSinF64), lo * w);
  return {sin, w + (((1 - w) - half) + fma(z * z, polynomial(z, kCosF64), -(hi * lo)))};
}
SinCos sin_cos_single(V hi, V lo) {
  const V z = fma(hi, hi, (hi + hi) * lo);
  return {hi + fma(hi * z, polynomial(z, kSinF32), lo), fma(fma(polynomial(z, kCosF32), z, -0.5), z, 1.0)};
}
SinCos sin_cos_of(const Angle& angle, V like) { return is32(like) ? sin_cos_single(angle.hi, angle.lo) : sin_cos_core(angle.hi, angle.lo); }

// The absolute tangent of F32, as a quotient of pairs: that of two floats would be wrong by more than 2 ulp.
V tan_single(const Angle& angle, V odd) {
  const V r = angle.hi;
  const Pair square = exact_product(r, r);
  const V z = square.hi, z_lo = fma(r + r, angle.lo, square.lo);
  const Pair cube = exact_product(r, z);
  const Pair third = exact_product(cube.hi, r.lit(kSinThird)), head = fast_sum(r, third.hi);
  const V small = fma(cube.hi * z, polynomial(z, kSinRest), fma(fma(z, angle.lo, fma(r, z_lo, cube.lo)), kSinThird, third.lo + angle.lo));
  const Pair s = fast_sum(head.hi, head.lo + small);
  const V half = z * 0.5;
  const Pair w = fast_sum(r.lit(1), -half);
  const Pair c = fast_sum(w.hi, fma(z * z, polynomial(z, kCosF32), fma(z_lo, fma(z, 1.0 / 12, -0.5), w.lo)));
  const Pair over{where(odd, c.hi, s.hi), where(odd, c.lo, s.lo)}, under{where(odd, s.hi, c.hi), where(odd, s.lo, c.lo)};
  const V inverse = 1 / under.hi, quotient = over.hi * inverse;
  return fma(fma(-quotient, under.hi, over.hi) + fma(-quotient, under.lo, over.lo), inverse, quotient);
}

}  // namespace

V sin_of_quarters(V t) {
  const V z = t * t;
  return t * polynomial(z, kSinTurnF32, kSinTurnF64);
}

V cos_of_quarters(V t) {
  const V z = t * t;
  return fma(polynomial(z, kCosTurnF32, kCosTurnF64), z, 1.0);
}

V cos_of_turn(V v) {
  const V quarters = v * 4, n = round(quarters);
  const V t = quarters - n;  // exact
  const V quadrant = convert(n, DType::I32);
  const V value = where(bit_set(quadrant, 0), sin_of_quarters(t), cos_of_quarters(t));
  return flip_sign(value, half_turn_sign(quadrant + 1, v));
}

}  // namespace detail

using namespace detail;

V sin(V x) {
  const Angle angle = reduce_angle(x);
  const auto [s, c] = sin_cos_of(angle, x);
  return flip_sign(where(bit_set(angle.quadrant, 0), c, s), half_turn_sign(angle.quadrant, x) ^ sign_of(x));
}

V cos(V x) {
  const Angle angle = reduce_angle(x);
  const auto [s, c] = sin_cos_of(angle, x);
  return flip_sign(where(bit_set(angle.quadrant, 0), s, c), half_turn_sign(angle.quadrant + 1, x));
}

V tan(V x) {
  const Angle angle = reduce_angle(x);
  const V odd = bit_set(angle.quadrant, 0);
  const V turned = shl(angle.quadrant, 31);  // an odd quadrant negates
  if (!is32(x)) {
    const auto [s, c] = sin_cos_core(angle.hi, angle.lo);
    return flip_sign(where(odd, c, s) / where(odd, s, c), shl(convert(turned, DType::I64), 32) ^ sign_of(x));
  }
  return flip_sign(tan_single(angle, odd), turned ^ sign_of(x));
}

}  // namespace naru::ir
