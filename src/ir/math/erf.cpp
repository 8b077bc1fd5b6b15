// erf, erfc and erfinv; the scaled complement erfcx, the normal distribution function and its logarithm.
#include "ir/math/detail.h"
#include "ir/math/special.h"

namespace naru::ir {
namespace {
using namespace detail;

// erf(x) / x - 1 as a polynomial in x^2, |x| <= 1.
constexpr double kErfF32[] = {0.128379166, -0.37612626, 0.112835787, -0.0268533472, 0.0051871622, -0.00079978531, 7.80690243e-05};
constexpr double kErfF64[] = {0.12837916709551259,   -0.37612638903183748,    0.11283791670954857,    -0.026866170645072879,
                              0.0052239776247807552, -0.00085483269787370037, 0.00012055331036743882, -1.4925593503777894e-05,
                              1.646097277505353e-06, -1.6350024845259763e-07, 1.4657877673702671e-08, -1.1365658759489102e-09,
                              5.9452512317926017e-11};
// log2(1 - erf(x)), 1 <= x <= 3.95.
constexpr double kLogTailF32[] = {-0.000462612807, -1.62616444, -0.920457959, -0.148911551, 0.0315796398, -0.00427042088, 0.000270642777};
// log2 of the normal distribution function at -x, 0 <= x <= 5.6, fitted for the least absolute error of the function.
constexpr double kLogLeftF32[] = {
    -1, -1.15110517, -0.459208518, -0.0524952412, 0.00706209894, -0.000135940194, -0.000186588892, 3.9463237e-05, -2.84203384e-06};
// (1 + 2x) exp(x^2) erfc(x) as a polynomial in (x - K) / (x + K), K = 3.75, x <= 28: the form of M. M. Shepherd and J. G. Laframboise, "Chebyshev
// approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < oo", Mathematics of Computation 36 (1981). Short, for results in float, x <= 10.3:
// (x + 3) exp(x^2) erfc(x) in (x - 3) / (x + 3), which takes one division.
constexpr double kErfcShort[] = {1.0740069070850957,     -0.88339445388323856,   0.59022835804950113,    -0.31046722393554665,
                                 0.1195277430086403,     -0.026827814372081579,  -0.0012124802279798134, 0.0030377807713559313,
                                 -0.0005460526045033585, -0.0002872566787187617, 9.6299996484473774e-05, 3.9742480849354461e-05};
constexpr double kErfcLong[] = {1.2375126308378275,     -0.14024059858554699,    0.0035854154854629578,   0.082276738490148354,
                                -0.10880393014166134,   0.092304321160308206,    -0.058693398591671789,   0.028362277419321534,
                                -0.0097465795336746999, 0.0017556258575604567,   0.00029371349510608495,  -0.00029015415865707813,
                                5.1649842538756915e-05, 2.2384742166012729e-05,  -1.1446213452755119e-05, -9.7537915977337275e-07,
                                1.7552402585823752e-06, -5.3228124630132438e-08, -2.6229885907883876e-07, 1.798681954167385e-08,
                                4.0230434657789339e-08, 1.3514662484982149e-10,  -4.8209918812656707e-09, -9.0866518318296469e-10};
// erfinv(x) / x as a polynomial in w - 2.5 and in sqrt(w) - 3 (F32), in w - 3.125, sqrt(w) - 3.25 and sqrt(w) - 5 (F64), with w = -log(1 - x^2):
// the variables of M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition (2011).
constexpr double kInverseF32[] = {1.50140941,      0.246640235,    -0.00417779479, -0.00125264574,  0.000218853689, -5.01168051e-06,
                                  -3.68487235e-06, 4.75043066e-07, 6.27642578e-08, -9.32390254e-09, -2.46100096e-09};
constexpr double kInverseTailF32[] = {2.83297682,    1.00167549,      0.00944438297,   -0.00764804007, 0.00569679635,  -0.00353699853,
                                      0.00143933145, -0.000183146185, -0.000213981752, 0.000204659926, -7.14938942e-05};
constexpr double kInverseF64[] = {1.653654562683103,       0.24015818242558953,     -0.0060336708714306781,  -0.0007407025341655501,
                                  0.00018673420803623177,  -1.3882523364297504e-05, -1.3654692035520995e-06, 4.234787797371985e-07,
                                  -2.9070367131778576e-08, -4.1126347518110834e-09, 1.0512109344681986e-09,  -5.4153875783317922e-11,
                                  -1.2974738928044467e-11, 2.6334607868405646e-12,  -8.1593750493882831e-14, -4.0539607540653235e-14,
                                  6.6466390387685854e-15,  2.0511288942909413e-17,  -1.3399200088195065e-16, 1.11774768703686e-17,
                                  1.3143921755570399e-18,  -1.6886089122497927e-19, -4.1649738532850934e-21};
constexpr double kInverseMiddleF64[] = {3.0838856104922208,      1.0052589676941659,      0.0053709145535728664,   -0.0037512085082688092,
                                        0.0024914420969160836,   -0.0016882755340825288,  0.00095328936511201458,  -0.00035503783303620333,
                                        2.4031242972882131e-05,  6.8287264294861365e-05,  -4.7318904252425308e-05, 1.2464369804695117e-05,
                                        2.9254651949410514e-06,  -3.9839224877592965e-06, 1.4992171984998717e-06,  -3.0487891042915324e-08,
                                        -2.7186044289386478e-07, 1.3411355080663108e-07,  9.1506367553491234e-10,  -1.6241906041090164e-08};
constexpr double kInverseTailF64[] = {4.8499064014085844,      1.0103004648645453,      -0.00013871931834295907, -0.0002150301198199023,
                                      7.5995277154425949e-05,  -1.9681770901921217e-05, 4.5260617204907521e-06,  -9.9302762398389166e-07,
                                      2.2900785861708846e-07,  -6.7563481804177691e-08, 2.9142236302680487e-08,  -1.5238984835488537e-08,
                                      7.6216752348270461e-09,  -3.4907954746560122e-09, 1.5043988641879052e-09,  -4.2537630642236758e-10,
                                      -2.6385610376544164e-11, 3.9784755926236908e-11};

// exp(x²) erfc(x) is 1 / (x sqrt(pi)) times this series in 1 / (2 x²); precise enough for a float from x = 10 on, for a double from x = 8 on.
constexpr double kOverRootPi = 0.56418958354775628, kOverRoot2 = 0.70710678118654752;
std::vector<double> scaled_series(int terms) {
  std::vector<double> c{1};
  for (int k = 1; k <= terms; ++k) c.push_back(-c.back() * (2 * k - 1));
  return c;
}

// exp(a^2) erfc(a) for F64 a, 0 <= a <= 10.3, to float precision. Divisions are most of the time of erfc.
V scaled_short(V a) {
  const V inverse = 1.0 / (a + 3.0);
  return polynomial((a - 3.0) * inverse, kErfcShort) * inverse;
}

// erfc(a) for F64 a >= 0, to double precision (`full`) or only to float precision.
V erfc_core(V a, bool full) {
  a = at_most(a, full ? 28 : 10.3);  // where it underflows
  if (full) {
    const V square = a * a, t = (a - 3.75) / (a + 3.75), e = exp(-square);
    return fma(-e, fma(a, a, -square), e) * (polynomial(t, kErfcLong) / fma(a, 2.0, 1.0));
  }
  const V x = a * a * -kLog2E;
  const V n = round(x), r = x - n;
  return scale(fma(polynomial(r, kExp2Short), r, 1.0), n) * scaled_short(a);
}

// exp(x²) erfc(x) for F64 x, with the same meaning of `full`.
V erfcx_core(V x, bool full) {
  const V a = abs(x);
  const double far = full ? 8 : 10;
  const V large = at_least(a, far), small = at_most(a, far);
  const V tail = polynomial(1.0 / (large * large * 2.0), scaled_series(full ? 20 : 5)) / large * kOverRootPi;
  if (!full) {
    const V positive = where(a > far, tail, scaled_short(small));
    return where(x < 0.0, 2.0 * exp(x * x) - positive, positive);
  }
  // The rounding error of x² is multiplied by x², so the square is taken in two parts. The result is infinite below -26.7.
  const V low = at_least(at_most(x, far), -27.0), high = convert(convert(low, DType::F32), DType::F64);
  const V square = exp(high * high) * exp((low - high) * (low + high));
  return where(x > far, tail, square * erfc(low));
}

// erfc(x) for F64 x, with the same meaning of `full`.
V erfc_of(V x, bool full) {
  if (full) return erfc(x);
  const V tail = erfc_core(abs(x), false);
  return where(x < 0.0, 2 - tail, tail);
}

}  // namespace

V erf(V x) {
  const V a = abs(x);
  const V small = fma(polynomial(a * a, kErfF32, kErfF64), a, a);
  V tail;
  if (is32(x)) {
    const V exponent = polynomial(at_most(a, 3.95), kLogTailF32);
    const V n = round(exponent), r = exponent - n;
    tail = scale(fma(polynomial(r, kExp2F32), r, 1.0), n);
  } else {
    tail = erfc_core(a, true);
  }
  return with_sign(where(a < 1.0, small, 1 - tail), sign_of(x));
}

V erfc(V x) {
  const V wide = convert(x, DType::F64), a = abs(wide);
  const V tail = erfc_core(a, !is32(x));
  const V value = where(wide < 0.0, 2 - tail, tail);
  if (is32(x)) return convert(value, DType::F32);
  // Near 0 the result is near 1, and 1 - erf(x) is more accurate than the product.
  return where(a < 0.5, 1 - fma(polynomial(x * x, kErfF64), x, x), value);
}

// 1/2 plus 1/2 minus the tail beyond |x|, with the sign of x. Small x needs no separate case: here the error is not relative to x.
V normal_cdf(V x) {
  if (!is32(x)) return (erf(x * kOverRoot2) + 1.0) * 0.5;
  const V exponent = polynomial(at_most(abs(x), 5.6), kLogLeftF32);
  const V n = round(exponent), r = exponent - n;
  const V left = scale(fma(polynomial(r, kExp2F32), r, 1.0), n);
  return with_sign(0.5 - left, sign_of(x)) + 0.5;
}

V erfinv(V x) {
  const V a = abs(x);
  const V w = -log_of_normal(fma(-x, x, 1.0));
  const V root = sqrt(w);
  const V ratio = is32(x) ? where(w < 5.0, polynomial(w - 2.5, kInverseF32), polynomial(root - 3, kInverseTailF32))
                          : where(w < 6.25, polynomial(w - 3.125, kInverseF64),
                                  where(root < 4.0, polynomial(root - 3.25, kInverseMiddleF64), polynomial(root - 5, kInverseTailF64)));
  return with_sign(where(a < 1.0, a * ratio, where(a == 1.0, inf(x), nan(x))), sign_of(x));
}

V ndtr(V x) { return convert(erfc_of(convert(x, DType::F64) * -kOverRoot2, !is32(x)) * 0.5, float_dtype(x)); }

V erfcx(V x) { return convert(erfcx_core(convert(x, DType::F64), !is32(x)), float_dtype(x)); }

V log_ndtr(V x) {
  const bool full = !is32(x);
  const V wide = convert(x, DType::F64), low = at_most(wide, -1.0), high = at_least(wide, -1.0);
  const V left = log_of_normal(erfcx_core(low * -kOverRoot2, full) * 0.5) - low * low * 0.5;
  return convert(where(wide < -1.0, left, log1p(erfc_of(high * kOverRoot2, full) * -0.5)), float_dtype(x));
}

}  // namespace naru::ir
