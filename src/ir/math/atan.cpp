// Inverse trigonometric functions.
#include "ir/math/detail.h"

namespace naru::ir {
namespace {
using namespace detail;

// (atan(u) - u) / u^3 as a polynomial in u^2, 0 <= u <= 1.
constexpr double kAtanF32[] = {-0.333332986, 0.199985296,   -0.142640188, 0.109509289,   -0.0839959309,
                               0.0578895882, -0.0311091486, 0.010877681,  -0.00178543921};
constexpr double kAtanF64[] = {-0.33333333333333071,   0.19999999999951473,    -0.14285714282575709,    0.11111111007041093,
                               -0.090909070032167694,  0.076922798415377927,   -0.066664040732452787,   0.058805278945191213,
                               -0.052535188594803682,  0.047223231197225504,   -0.04219181022393869,    0.036641947935057997,
                               -0.02990391047278778,   0.02198491035802716,    -0.013900608433938089,   0.0071965342767052664,
                               -0.0028849331184358402, 0.00083132663155108266, -0.00015216183018692501, 1.3225166185784373e-05};
// (asin(s) - s) / s^3 as a polynomial in s^2, s^2 <= 0.3.
constexpr double kAsinF32[] = {0.166666418, 0.0750154778, 0.0443243757, 0.0333456546, 0.00889848825, 0.044905439};
constexpr double kAsinF64[] = {0.1666666666666668,   0.074999999999956116,  0.044642857148072736, 0.030381944130682629,
                               0.022372170309387984, 0.017352503921800488,  0.013968989049484064, 0.011505077895823909,
                               0.010141690971526032, 0.0061431140433078129, 0.016924955005380753, -0.022739713054321823,
                               0.066101501377887117, -0.07285417861738494,  0.05540487281773436};

// Above this, asin uses sqrt((1 - x)/2). The bound is not 1/2: here twice the small angle is below 1, so its rounding error is at most 1/2 ulp of
// the result.
constexpr double kTurn = 0.5475;

Split half_pi(V x) { return pick(x, kHalfPiF32, kHalfPiF64); }

// pi/2 - value; value in [0, pi/2].
V from_half_pi(V value) {
  const Split p = half_pi(value);
  return p.hi - (value - p.lo);
}
// pi - value
V from_pi(V value) {
  const Split p = half_pi(value);
  return p.hi * 2 - (value - p.lo * 2);
}

// asin(sqrt(z)) for s = sqrt(z), z <= 0.3
V asin_core(V s, V z) { return fma(s * z, polynomial(z, kAsinF32, kAsinF64), s); }

}  // namespace

V asin(V x) {
  const V a = abs(x);
  const V small = a <= kTurn;
  const V z = where(small, a * a, (1 - a) * 0.5);
  const V p = asin_core(where(small, a, sqrt(z)), z);
  return with_sign(where(small, p, from_half_pi(p + p)), sign_of(x));
}

V acos(V x) {
  const V a = abs(x);
  const V small = a <= kTurn;
  const V z = where(small, a * a, (1 - a) * 0.5);
  const V p = asin_core(where(small, a, sqrt(z)), z);
  const V twice = p + p;
  const V below = where(x < 0.0, from_pi(twice), twice);
  return where(small, from_half_pi(flip_sign(p, sign_of(x))), below);
}

V atan(V x) {
  const V a = abs(x);
  const V steep = a > 1.0;
  const V p = odd_polynomial(where(steep, 1 / a, a), kAtanF32, kAtanF64);
  return with_sign(where(steep, from_half_pi(p), p), sign_of(x));
}

V atan2(V y, V x) {
  const V a = abs(y), b = abs(x);
  const V steep = a > b;
  const V high = where(steep, a, b), low = where(steep, b, a);
  // Both zero: the ratio is 0. Both infinite: it is 1.
  const V ratio = where(high == 0.0, 0.0, where(low == kInf, 1.0, low / high));
  const V p = odd_polynomial(ratio, kAtanF32, kAtanF64);
  const V upright = where(steep, from_half_pi(p), p);
  const V negative = sign_of(x) != sign_of(x).lit(0);
  const V angle = with_sign(where(negative, from_pi(upright), upright), sign_of(y));
  return where(isnan(x), x, where(isnan(y), y, angle));
}

}  // namespace naru::ir
