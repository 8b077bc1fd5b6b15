// Exponential functions: x = n ln 2 + r with |r| <= ln(2)/2, a polynomial in r, and an exact scaling by 2^n.
#include <cmath>

#include "ir/math_detail.h"

namespace naru::ir {
namespace {
using namespace detail;

// (e^r - 1 - r) / r^2, fitted for e^r.
constexpr double kExpF32[] = {0.49999994, 0.166665167, 0.0416681021, 0.00836919993, 0.00138391089};
constexpr double kExpF64[] = {0.5,
                              0.16666666666666682,
                              0.041666666666666095,
                              0.0083333333333169834,
                              0.0013888888889115928,
                              0.0001984126989651233,
                              2.4801586926409291e-05,
                              2.755723473093612e-06,
                              2.7557581780937561e-07,
                              2.5112083334614159e-08,
                              2.0826717561125057e-09};
// The same, fitted for e^r - 1.
constexpr double kExpm1F32[] = {0.5, 0.166666657, 0.0416664667, 0.0083336439, 0.00139350409, 0.000196624154};
constexpr double kExpm1F64[] = {0.5,
                                0.16666666666666666,
                                0.041666666666666692,
                                0.0083333333333333454,
                                0.0013888888888870159,
                                0.00019841269841207681,
                                2.4801587353754699e-05,
                                2.7557319362665824e-06,
                                2.7557248591802811e-07,
                                2.5051967401320373e-08,
                                2.0922662830274312e-09,
                                1.6120192423368041e-10};
// (1 - e^(-2r) - 2r) / r^2, for |r| <= ln(2)/4.
constexpr double kTanhF32[] = {-2, 1.33333325, -0.666663468, 0.266676605, -0.0891842619, 0.0251678918};
constexpr double kTanhF64[] = {-2,
                               1.3333333333333333,
                               -0.66666666666666707,
                               0.26666666666666705,
                               -0.088888888888769016,
                               0.025396825396745832,
                               -0.0063492063625612029,
                               0.0014109347513684902,
                               -0.00028218622558006079,
                               5.1306429237904124e-05,
                               -8.5699226952803583e-06,
                               1.3205661633223099e-06};
// (2^r - 1) / r, for |r| <= 1/2.
constexpr double kExp2F32[] = {0.693147242, 0.240226552, 0.0555027239, 0.00961706787, 0.00134178973, 0.000158248062};
constexpr double kExp2F64[] = {0.69314718055994529,
                               0.24022650695910072,
                               0.055504108664821736,
                               0.0096181291076285619,
                               0.0013333558146381666,
                               0.0001540353039317162,
                               1.5252733864915858e-05,
                               1.3215487003585603e-06,
                               1.0178047501261671e-07,
                               7.0548147828486977e-09,
                               4.4572438722617689e-10,
                               2.585528181469166e-11};

struct Reduced {
  V n, r;
};
// x = n ln 2 + r. The first fma is exact: r is a multiple of half an ulp of its constant.
Reduced reduce(V x) {
  const Split ln2 = pick(x, kLn2F32, kLn2F64);
  const V n = round(x * kLog2E);
  return {n, fma(n, -ln2.lo, fma(n, -ln2.hi, x))};
}

// e^x / 2^down, x within the range that needs no more than 2^2000.
V exp_within(V x, double down = 0) {
  const auto [n, r] = reduce(x);
  const V p = fma(fma(polynomial(r, kExpF32, kExpF64), r, 1.0), r, 1.0);
  return scale(p, down == 0 ? n : n - down);
}

// (e^x - 1) / 2^down. The power of two is scaled down first, so that nothing overflows before the result does.
V expm1_within(V x, double down) {
  const auto [n, r] = reduce(x);
  const V p = fma(polynomial(r, kExpm1F32, kExpm1F64), r * r, r);
  const V power = scale(x.lit(1), n - down);
  return fma(power, p, power - std::ldexp(1.0, -static_cast<int>(down)));
}

}  // namespace

V exp(V x) { return exp_within(at_most(at_least(x, pick(x, -104, -746)), pick(x, 89, 710))); }

V exp2(V x) {
  x = at_most(at_least(x, pick(x, -151, -1076)), pick(x, 128, 1024));
  const V n = round(x), r = x - n;
  return scale(fma(polynomial(r, kExp2F32, kExp2F64), r, 1.0), n);
}

V expm1(V x) {
  const V clamped = at_most(at_least(x, pick(x, -40, -80)), pick(x, 88.75, 709.8));
  // Below, x is the result; the formula would lose the sign of zero and the last bit of a denormal.
  return where(abs(x) < pick(x, 0x1p-25, 0x1p-54), x, expm1_within(clamped, 1) * 2);
}

V sinh(V x) {
  const V a = at_most(abs(x), pick(x, 89.5, 710.5));
  const V g = expm1_within(a, 2);  // (e^a - 1) / 4
  const V magnitude = (g + g / fma(g, 4.0, 1.0)) * 2;
  return where(abs(x) < pick(x, 0x1p-12, 0x1p-26), x, with_sign(magnitude, sign_of(x)));
}

V cosh(V x) {
  const V e = exp_within(at_most(abs(x), pick(x, 89.5, 710.5)), 2);  // e^|x| / 4
  return (e + 0.0625 / e) * 2;
}

// s / (2 - s) with s = 1 - e^(-2|x|): one formula for all x, because s keeps its relative accuracy near 0.
V tanh(V x) {
  const V a = at_most(abs(x), pick(x, 9.1, 19.1));
  const Split ln2 = pick(x, kLn2F32, kLn2F64);
  const V n = round(a * (-2 * kLog2E));  // -2a = n ln 2 - 2r
  const V r = fma(n, ln2.lo / 2, fma(n, ln2.hi / 2, a));
  const V p = fma(polynomial(r, kTanhF32, kTanhF64), r * r, r + r);  // 1 - e^(-2r)
  const V power = scale(x.lit(1), n);
  const V s = fma(power, p, 1 - power);
  return with_sign(s / (2 - s), sign_of(x));
}

V sigmoid(V x) {
  const V e = exp_within(at_least(-abs(x), pick(x, -104, -746)));
  return where(x < 0.0, e, 1.0) / (e + 1);
}

V softplus(V x) { return at_least(x, 0) + log1p(exp_within(at_least(-abs(x), pick(x, -104, -746)))); }

}  // namespace naru::ir
