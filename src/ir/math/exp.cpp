// Exponential functions: x = n ln 2 + r with |r| <= ln(2)/2, a polynomial in r, and an exact scaling by 2^n.
#include "ir/math/detail.h"

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
// (2^r - 1 - r ln 2) / r^2, fitted for 2^r, -0.41 <= r <= 0.61: the first coefficient, and the polynomial behind it.
constexpr double kExp2Square = 0.240226507;
constexpr double kExp2RestF32[] = {0.0555041283, 0.00961811654, 0.00133305602, 0.000154304915, 1.63688783e-05};
// (e^(2r) - 1 - 2r) / r^2, fitted for e^(2r), |r| <= ln(2)/4.
constexpr double kExpTwiceF32[] = {1.99999976, 1.33332133, 0.666689634, 0.267814398, 0.0885702968};
constexpr double kExpTwiceF64[] = {2,
                                   1.3333333333333346,
                                   0.66666666666665753,
                                   0.26666666666614347,
                                   0.088888888890341938,
                                   0.025396825467535782,
                                   0.0063492062531607784,
                                   0.0014109304182239294,
                                   0.00028218963743680063,
                                   5.1429546669289797e-05,
                                   8.5306235130368232e-06};
// (tanh(x) - x) / x^3 as a polynomial in x^2, |x| <= 0.26.
constexpr double kTanhF32[] = {-0.333332151, 0.133226886, -0.0512254387};
constexpr double kTanhF64[] = {-0.33333333333333326,   0.13333333333329611, -0.053968253962143733,  0.021869488050482524,
                               -0.0088632141431347865, 0.00359157790336359, -0.0014475861449413133, 0.00052273867218698708};
// (sinh(x) - x) / x^3 as a polynomial in x^2, |x| <= 1.
constexpr double kSinhF32[] = {0.166666672, 0.00833331048, 0.000198428956, 2.78221182e-06};
constexpr double kSinhF64[] = {0.16666666666666666,    0.0083333333333333332,  0.000198412698412696,   2.7557319224116268e-06,
                               2.5052108346514458e-08, 1.6059050600550665e-10, 7.6464829427022754e-13, 2.8482317709327277e-15};

struct Reduced {
  V n, r;
};
// x = n ln 2 + r. The first fma is exact: r is a multiple of half an ulp of its constant.
Reduced reduce(V x) {
  const Split ln2 = pick(x, kLn2F32, kLn2F64);
  const V n = round(x * kLog2E);
  return {n, fma(n, -ln2.lo, fma(n, -ln2.hi, x))};
}

// e^x / 2^down, for x limited so that the scale is within 2^±2000.
V exp_within(V x, double down = 0) {
  const auto [n, r] = reduce(x);
  const V p = fma(fma(polynomial(r, kExpF32, kExpF64), r, 1.0), r, 1.0);
  return scale(p, down == 0 ? n : n - down);
}

// e^|x| / 4, which overflows later than sinh and cosh do.
V quarter_exp(V x) { return exp_within(at_most(abs(x), pick(x, 89.5, 710.5)), 2); }

}  // namespace

// 2^r = 1 + r ln 2 + c r^2 + r^3 Q(r), the second term as a pair. What is left of it by 2^(n + 125), if that is below 1, is rounded to the places
// that a denormal result has, by adding 1/2, while the pair still tells on which side of a tie it is.
V detail::exp2_scaled(Pair r, V n) {
  // w is r ln 2, negated as the fma for its error needs it.
  const V w = r.hi * -kLn2F32.hi, sum = 1 - w;
  const V w_lo = fma(r.hi, kLn2F32.hi, w) + fma(r.hi, kLn2F32.lo, r.lo * kLn2F32.hi * sum);
  const V square = r.hi * r.hi, cubic = fma(square * r.hi, polynomial(r.hi, kExp2RestF32), w_lo - (w + (sum - 1)));
  const Pair value = fast_sum(sum, fma(square, kExp2Square, cubic));
  const V i = convert(n, DType::I32), most = prim_max(i, i.lit(-125));
  const V down = from_bits(shl(i - most, 23) + i.lit_bits(0x3f800000u)), up = from_bits(shl(most, 23) + i.lit_bits(0x3f000000u));
  const V scaled = value.hi * down, half = where(scaled < 0.5, scaled.lit(0.5), 0.0);
  const Pair rounded = fast_sum(half, scaled);
  const V rest = (rounded.hi + fma(value.lo, down, rounded.lo)) - half;
  return (rest + rest) * up;
}

V exp(V x) { return exp_within(at_most(at_least(x, pick(x, -104, -746)), pick(x, 89, 710))); }

V exp2(V x) {
  x = at_most(at_least(x, pick(x, -151, -1076)), pick(x, 128, 1024));
  const V n = round(x), r = x - n;
  return scale(fma(polynomial(r, kExp2F32, kExp2F64), r, 1.0), n);
}

V expm1(V x) {
  const auto [n, r] = reduce(at_most(at_least(x, pick(x, -40, -80)), pick(x, 88.75, 709.8)));
  const V p = fma(polynomial(r, kExpm1F32, kExpm1F64), r * r, r);  // e^r - 1
  // Scale by half of the power of two, so that it does not overflow before the result does.
  const V half = scale(x.lit(1), n - 1);
  // Below this bound x itself is the result; the formula would lose the sign of zero and the last bit of a denormal.
  return where(abs(x) < pick(x, 0x1p-25, 0x1p-54), x, fma(half, p, half - 0.5) * 2);
}

V sinh(V x) {
  const V a = abs(x), e = quarter_exp(x);
  return with_sign(where(a < 1.0, odd_polynomial(a, kSinhF32, kSinhF64), (e - 0.0625 / e) * 2), sign_of(x));
}

V cosh(V x) {
  const V e = quarter_exp(x);
  return (e + 0.0625 / e) * 2;
}

// t / (t + 2) with t = e^(2|x|) - 1; near 0, where the rounding of t + 2 would matter, an odd polynomial.
V tanh(V x) {
  const V a = abs(x), limited = at_most(a, pick(x, 9.1, 19.1));
  const Split ln2 = pick(x, kLn2F32, kLn2F64);
  const V n = round(limited * (2 * kLog2E));
  const V r = fma(n, -ln2.lo / 2, fma(n, -ln2.hi / 2, limited));  // 2|x| = n ln 2 + 2r
  const V p = fma(polynomial(r, kExpTwiceF32, kExpTwiceF64), r * r, r + r);
  const V power = scale(x.lit(1), n);
  const V t = fma(power, p, power - 1);
  return with_sign(where(a < 0.2575, odd_polynomial(a, kTanhF32, kTanhF64), t / (t + 2)), sign_of(x));
}

// 1 / (1 + e) or e / (1 + e) with e = e^-|x|. The rounding error of 1 + e is added back to the numerator before that is rounded.
V sigmoid(V x) {
  const auto [n, r] = reduce(at_least(-abs(x), pick(x, -104, -746)));
  const V s = fma(polynomial(r, kExpF32, kExpF64), r * r, r);  // e^r - 1
  const V e = scale(s + 1, n);
  const V d = e + 1;
  const V lost = e - (d - 1);
  return where(x < 0.0, scale((s - lost) + 1, n), 1.0) / d;
}

V softplus(V x) { return at_least(x, 0) + log1p(exp_within(at_least(-abs(x), pick(x, -104, -746)))); }

}  // namespace naru::ir
