// torch.special's functions that are series over others: of the error function, modified Bessel functions, orthogonal polynomials.
#include "naru/special.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "naru/ops.h"
#include "ops/by_float64.h"
#include "ops/common.h"

namespace naru {
namespace {

using ops::by_float64;
using ops::polynomial;
using ops::result_type;
constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMostSteps = 10000;  // of a sum or a recurrence whose length a caller names
const double kRoot2 = std::sqrt(2.0), kRootPi = std::sqrt(kPi);

// exp(x * x), x in float64: the square's rounding error counts as often as the square is large.
Tensor exp_of_square(const Tensor& x) {
  const Tensor high = x.to(DType::F32).to(DType::F64);
  return exp(high * high) * exp((x - high) * (x + high));
}

Tensor erfcx_of(const Tensor& x) {
  // exp(x²) erfc(x), and from 8 on, where that is 0 times infinity before long, 1 / (x sqrt(pi)) times a series in 1 / (2 x²).
  constexpr double kFar = 8;
  std::vector<double> c{1};
  for (int k = 1; k <= 20; ++k) c.push_back(-c.back() * (2 * k - 1));
  const Tensor large = clamp_min(x, kFar), small = clamp(x, -27.0, kFar);  // infinite from -26.7 on
  const Tensor far = polynomial(c, reciprocal(large * large * 2.0)) / large * (1 / kRootPi);
  return where(gt(x, kFar), far, exp_of_square(small) * erfc(small));
}

Tensor ndtr_of(const Tensor& x) { return erfc(x * (-1 / kRoot2)) * 0.5; }

Tensor log_ndtr_of(const Tensor& x) {
  const Tensor low = clamp_max(x, -1.0), high = clamp_min(x, -1.0);
  const Tensor left = log(erfcx_of(low * (-1 / kRoot2)) * 0.5) - low * low * 0.5;
  return where(lt(x, -1.0), left, log1p(erfc(high * (1 / kRoot2)) * -0.5));
}

Tensor density(const Tensor& x) { return exp(x * x * -0.5) * (1 / std::sqrt(2 * kPi)); }

// Quotients of polynomials, after Wichura (1988, AS 241): around 1/2, in the tails, and far out in them.
struct Quotient {
  std::vector<double> above, below;
  Tensor operator()(const Tensor& x) const { return polynomial(above, x) / polynomial(below, x); }
};
const Quotient& ndtri_part(int part) {
  static const auto& parts = *new std::array<Quotient, 3>{
      Quotient{{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4,
                6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
               {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
                3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}},
      Quotient{{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
                1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
               {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
                1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}},
      Quotient{{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
                2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
               {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
                1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}}};
  return parts[static_cast<size_t>(part)];
}

Tensor ndtri_of(const Tensor& p) {
  constexpr double kNear = 0.425;  // of 1/2
  const Tensor q = p - 0.5, near = clamp(q, -kNear, kNear), less = where(gt(p, 0.5), 1.0 - p, p);
  const Tensor r = sqrt(-log(clamp(less, std::numeric_limits<double>::denorm_min(), 0.5)));
  const Tensor tail = where(gt(r, 5.0), ndtri_part(2)(clamp_min(r, 5.0) - 5.0), ndtri_part(1)(clamp_max(r, 5.0) - 1.6));
  const Tensor y = where(gt(abs(q), kNear), where(lt(q, 0.0), -tail, tail), near * ndtri_part(0)(kNear * kNear - near * near));
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  return where(eq(p, 0.0), -infinity, where(eq(p, 1.0), infinity, where(logical_and(gt(p, 0.0), lt(p, 1.0)), y, nan)));
}

// exp(-|x|) I_n(x): the power series up to 20, the asymptotic one behind. n: 0 or 1.
Tensor scaled_bessel(const Tensor& x, int n) {
  constexpr double kFar = 20;
  std::vector<double> near{1}, far{1};
  for (int k = 1; k <= 42; ++k) near.push_back(near.back() / (static_cast<double>(k) * (k + n)));
  for (int k = 1; k <= 30; ++k) far.push_back(far.back() * ((2.0 * k - 1) * (2.0 * k - 1) - 4 * n * n) / (8.0 * k));
  const Tensor a = abs(x), small = clamp_max(a, kFar), large = clamp_min(a, kFar), half = small * 0.5;
  Tensor inside = polynomial(near, half * half) * exp(-small);
  if (n == 1) inside = inside * half;
  const Tensor outside = polynomial(far, reciprocal(large)) / (sqrt(large) * std::sqrt(2 * kPi));
  const Tensor y = where(gt(a, kFar), outside, inside);
  return n == 1 ? where(lt(x, 0.0), -y, y) : y;
}

Tensor or_half(const Tensor& x, const Tensor& y) { return where(eq(x, 0.0), 0.5, y); }

}  // namespace

namespace special {

Tensor erfcx(const Tensor& t) {
  return by_float64(t, "SpecialErfcxBackward0", erfcx_of, [](const Tensor& x, const Tensor& y) { return x * y * 2.0 - 2 / kRootPi; });
}
Tensor ndtr(const Tensor& t) {
  return by_float64(t, "SpecialNdtrBackward0", ndtr_of, [](const Tensor& x, const Tensor&) { return density(x); });
}
Tensor log_ndtr(const Tensor& t) {
  return by_float64(t, "SpecialLogNdtrBackward0", log_ndtr_of,
                    [](const Tensor& x, const Tensor&) { return std::sqrt(2 / kPi) / erfcx(x * (-1 / kRoot2)); });
}
Tensor ndtri(const Tensor& t) {
  return by_float64(t, "SpecialNdtriBackward0", ndtri_of,
                    [](const Tensor&, const Tensor& y) { return exp(y * y * 0.5) * std::sqrt(2 * kPi); });
}

Tensor entr(const Tensor& t) {
  return by_float64(
      t, "SpecialEntrBackward0",
      [](const Tensor& x) {
        return where(isnan(x), x, where(gt(x, 0.0), -x * log(x), where(eq(x, 0.0), 0.0, -std::numeric_limits<double>::infinity())));
      },
      [](const Tensor& x, const Tensor&) { return -(log(x) + 1.0); });
}

Tensor xlog1py(const Operand& a, const Operand& b) {
  if (!a.is_tensor() && !b.is_tensor()) throw TypeError("special_xlog1py(): argument 'input' (position 1) must be Tensor, not a number");
  const auto tensor_of = [&](const Operand& o, const Operand& other) {
    return o.is_tensor() ? o.tensor() : scalar_tensor(o.scalar(), other.tensor().device());
  };
  const Tensor x = tensor_of(a, b), y = tensor_of(b, a);
  // The logarithm's pole counts only where x does not vanish.
  const Tensor counts = logical_or(ne(x, 0.0), isnan(y));
  return where(counts, mul(x, log1p(where(counts, y, zeros_like(y)))), 0.0);
}

Tensor multigammaln(const Tensor& t, int64_t p) {
  ops::require_defined(t, "mvlgamma", "input");
  if (p < 1) throw RuntimeError("mvlgamma: p has to be greater than or equal to 1");
  if (p > kMostSteps) throw RuntimeError("mvlgamma: wanted p of at most {}, got {}", kMostSteps, p);
  const Tensor x = t.to(result_type(t));
  Tensor sum = lgamma(x);
  for (int64_t j = 1; j < p; ++j) sum = sum + lgamma(x - static_cast<double>(j) / 2);
  return sum + static_cast<double>(p * (p - 1)) * std::log(kPi) / 4;
}

Tensor i0e(const Tensor& t) {
  return by_float64(
      t, "SpecialI0EBackward0", [](const Tensor& x) { return scaled_bessel(x, 0); },
      [](const Tensor& x, const Tensor& y) { return i1e(x) - sign(x) * y; });
}
Tensor i1e(const Tensor& t) {
  return by_float64(
      t, "SpecialI1EBackward0", [](const Tensor& x) { return scaled_bessel(x, 1); },
      [](const Tensor& x, const Tensor& y) { return or_half(x, i0e(x) - y * (sign(x) + 1.0 / where(eq(x, 0.0), 1.0, x))); });
}
Tensor i0(const Tensor& t) {
  return by_float64(
      t, "I0Backward0", [](const Tensor& x) { return scaled_bessel(x, 0) * exp(abs(x)); },
      [](const Tensor& x, const Tensor&) { return i1(x); });
}
Tensor i1(const Tensor& t) {
  return by_float64(
      t, "SpecialI1Backward0", [](const Tensor& x) { return scaled_bessel(x, 1) * exp(abs(x)); },
      [](const Tensor& x, const Tensor& y) { return or_half(x, i0(x) - y / where(eq(x, 0.0), 1.0, x)); });
}

namespace {

// P(0), P(1), and P(k + 1) of P(k), P(k - 1), x and k.
struct Family {
  const char* name;
  Tensor (*first)(const Tensor& x);
  Tensor (*next)(const Tensor& now, const Tensor& before, const Tensor& x, double k);
  bool shifted;
};
Tensor twice(const Tensor& now, const Tensor& before, const Tensor& x, double) { return x * now * 2.0 - before; }
constexpr Family kFamilies[] = {
    {"chebyshev_polynomial_t", [](const Tensor& x) { return x; }, twice, false},
    {"chebyshev_polynomial_u", [](const Tensor& x) { return x * 2.0; }, twice, false},
    {"chebyshev_polynomial_v", [](const Tensor& x) { return x * 2.0 - 1.0; }, twice, false},
    {"chebyshev_polynomial_w", [](const Tensor& x) { return x * 2.0 + 1.0; }, twice, false},
    {"shifted_chebyshev_polynomial_t", [](const Tensor& x) { return x; }, twice, true},
    {"shifted_chebyshev_polynomial_u", [](const Tensor& x) { return x * 2.0; }, twice, true},
    {"shifted_chebyshev_polynomial_v", [](const Tensor& x) { return x * 2.0 - 1.0; }, twice, true},
    {"shifted_chebyshev_polynomial_w", [](const Tensor& x) { return x * 2.0 + 1.0; }, twice, true},
    {"hermite_polynomial_h", [](const Tensor& x) { return x * 2.0; },
     [](const Tensor& now, const Tensor& before, const Tensor& x, double k) { return x * now * 2.0 - before * (2 * k); }, false},
    {"hermite_polynomial_he", [](const Tensor& x) { return x; },
     [](const Tensor& now, const Tensor& before, const Tensor& x, double k) { return x * now - before * k; }, false},
    {"laguerre_polynomial_l", [](const Tensor& x) { return 1.0 - x; },
     [](const Tensor& now, const Tensor& before, const Tensor& x, double k) { return ((2 * k + 1 - x) * now - before * k) / (k + 1); },
     false},
    {"legendre_polynomial_p", [](const Tensor& x) { return x; },
     [](const Tensor& now, const Tensor& before, const Tensor& x, double k) { return (x * now * (2 * k + 1) - before * k) / (k + 1); },
     false}};

}  // namespace

Tensor orthogonal_polynomial(std::string_view name, const Operand& x, const Operand& n) {
  const auto* const family = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return f.name == name; });
  if (family == std::end(kFamilies)) throw RuntimeError("there is no polynomial named {}", name);
  if (!x.is_tensor() && !n.is_tensor()) throw TypeError("{}(): wanted a Tensor among x and n", name);
  const Device device = x.is_tensor() ? x.tensor().device() : n.tensor().device();
  const Tensor given = x.is_tensor() ? x.tensor() : scalar_tensor(x.scalar(), Options(default_dtype(), device));
  const Dims shape = n.is_tensor() ? broadcast_shapes(given.sizes(), n.tensor().sizes()) : given.sizes();
  const Tensor at = given.to(result_type(given)).expand(shape), point = family->shifted ? at * 2.0 - 1.0 : at;
  // Orders of elements, whose greatest the host must know; or one order for all.
  const Tensor orders = n.is_tensor() ? trunc(n.tensor().to(DType::F64)).expand(shape) : Tensor();
  const double most = !n.is_tensor() ? std::trunc(n.scalar().to_double()) : orders.numel() ? ops::number_or(max(orders), 2) : 0;
  if (most > kMostSteps) throw RuntimeError("{}: wanted orders of at most {}, got {}", name, kMostSteps, most);
  Tensor before = zeros_like(point), now = ones_like(point), y = most >= 0 && !n.is_tensor() ? now : before;  // 0 below order 0
  for (int64_t k = 0; static_cast<double>(k) <= most; ++k) {
    if (k > 0) {
      const Tensor next = k == 1 ? family->first(point) : family->next(now, before, point, static_cast<double>(k - 1));
      before = now, now = next;
    }
    y = n.is_tensor() ? where(eq(orders, static_cast<double>(k)), now, y) : now;
  }
  return y;
}

std::vector<const char*> orthogonal_polynomials() {
  std::vector<const char*> names;
  for (const Family& f : kFamilies) names.push_back(f.name);
  return names;
}

}  // namespace special
}  // namespace naru
