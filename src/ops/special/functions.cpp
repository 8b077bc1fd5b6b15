// torch.special's functions that are compositions: from the error function, modified Bessel functions, and orthogonal polynomials.
#include "naru/ops/special.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "ir/special_ids.h"
#include "naru/ops.h"
#include "naru/ops/aliases.h"
#include "ops/elementwise/by_float64.h"
#include "ops/elementwise/elementwise.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

using ops::by_float64;
using ops::by_kernel;
using ops::result_type;
constexpr int64_t kMostSteps = 10000;  // bound on the length of a sum or a recurrence that a caller chooses
const double kRoot2 = std::sqrt(2.0), kRootPi = std::sqrt(std::numbers::pi);

Tensor density(const Tensor& x) { return exp(x * x * -0.5) * (1 / std::sqrt(2 * std::numbers::pi)); }

// True if |x| is so small that I1(x) is x / 2. The computed quotient I1(x) / x is then too inaccurate to subtract, so or_half() uses 1/2.
Tensor is_tiny(const Tensor& x) { return abs(x) <= (x.dtype() == DType::F64 ? 0x1p-52 : 0x1p-23); }
Tensor or_half(const Tensor& x, const Tensor& y) { return where(is_tiny(x), 0.5, y); }

DType inexact_type_of(const Operand& a, const Operand& b) {
  const Operand both[] = {a, b};
  const DType type = ops::result_type(both);
  return is_inexact(type) ? type : default_dtype();
}

}  // namespace

namespace special {

Tensor erfcx(const Tensor& t) {
  return by_kernel(t, "SpecialErfcxBackward0", ir::op::erfcx, [](const Tensor& x, const Tensor& y) { return x * y * 2.0 - 2 / kRootPi; });
}
Tensor ndtr(const Tensor& t) {
  return by_kernel(t, "SpecialNdtrBackward0", ir::op::ndtr, [](const Tensor& x, const Tensor&) { return density(x); });
}
Tensor log_ndtr(const Tensor& t) {
  return by_kernel(t, "SpecialLogNdtrBackward0", ir::op::log_ndtr,
                   [](const Tensor& x, const Tensor&) { return std::sqrt(2 / std::numbers::pi) / erfcx(x * (-1 / kRoot2)); });
}
Tensor ndtri(const Tensor& t) {
  return by_kernel(t, "SpecialNdtriBackward0", ir::op::ndtri,
                   [](const Tensor&, const Tensor& y) { return exp(y * y * 0.5) * std::sqrt(2 * std::numbers::pi); });
}

Tensor entr(const Tensor& t) {
  return by_kernel(t, "SpecialEntrBackward0", ir::op::entr, [](const Tensor& x, const Tensor&) { return -(log(x) + 1.0); });
}

Tensor xlog1py(const Operand& a, const Operand& b) {
  if (!a.is_tensor() && !b.is_tensor()) throw TypeError("special_xlog1py(): argument 'input' (position 1) must be Tensor, not a number");
  const auto tensor_of = [&](const Operand& o, const Operand& other) {
    return o.is_tensor() ? o.tensor() : scalar_tensor(o.scalar(), other.tensor().device());
  };
  const DType type = inexact_type_of(a, b);
  const Tensor x = tensor_of(a, b).to(type), y = tensor_of(b, a).to(type);
  // x log1p(y) is 0 where x is 0, even at the logarithm's pole.
  Tensor value;
  {
    const NoGrad off;
    const Tensor counts = logical_or(ne(x, 0.0), isnan(y));
    value = where(counts, mul(x, log1p(where(counts, y, zeros_like(y)))), 0.0);
  }
  return autograd::record(
      value, "SpecialXlog1PyBackward0", {&x, &y}, {&x, &y},
      [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved, autograd::Needed needed) -> std::vector<Tensor> {
        const Tensor &a = saved[0], &b = saved[1];
        Tensor ga, gb;
        if (needed[0]) {
          const Tensor pole = logical_and(eq(a, 0.0), le(b, -1.0));
          ga = ops::sum_to(g[0] * log1p(where(pole, 0.0, b)), a.sizes());
        }
        if (needed[1]) gb = ops::sum_to(g[0] * a / (b + 1.0), b.sizes());
        return {ga, gb};
      });
}

Tensor multigammaln(const Tensor& t, int64_t p) {
  ops::require_defined(t, "mvlgamma", "input");
  if (p < 1) throw RuntimeError("mvlgamma: p has to be greater than or equal to 1");
  if (p > kMostSteps) throw RuntimeError("mvlgamma: wanted p of at most {}, got {}", kMostSteps, p);
  const Tensor x = t.to(result_type(t));
  Tensor sum = lgamma(x);
  for (int64_t j = 1; j < p; ++j) sum = sum + lgamma(x - static_cast<double>(j) / 2);
  return sum + static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi) / 4;
}

Tensor i0e(const Tensor& t) {
  return by_kernel(t, "SpecialI0EBackward0", ir::op::bessel_i0e, [](const Tensor& x, const Tensor& y) { return i1e(x) - sign(x) * y; });
}
Tensor i1e(const Tensor& t) {
  return by_kernel(t, "SpecialI1EBackward0", ir::op::bessel_i1e,
                   [](const Tensor& x, const Tensor& y) { return or_half(x, i0e(x) - y * (sign(x) + 1.0 / where(is_tiny(x), 1.0, x))); });
}
Tensor i0(const Tensor& t) {
  return by_kernel(t, "I0Backward0", ir::op::bessel_i0, [](const Tensor& x, const Tensor&) { return i1(x); });
}
Tensor i1(const Tensor& t) {
  return by_kernel(t, "SpecialI1Backward0", ir::op::bessel_i1,
                   [](const Tensor& x, const Tensor& y) { return or_half(x, i0(x) - y / where(is_tiny(x), 1.0, x)); });
}

namespace {

// An orthogonal polynomial family: P(1), and the recurrence for P(k + 1) from P(k), P(k - 1), x and k. P(0) is 1.
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
  const DType type = inexact_type_of(x, n);
  const Tensor given = x.is_tensor() ? x.tensor().to(type) : scalar_tensor(x.scalar(), Options(type, device));
  const Dims shape = n.is_tensor() ? broadcast_shapes(given.sizes(), n.tensor().sizes()) : given.sizes();
  const Tensor at = given.expand(shape), point = family->shifted ? at * 2.0 - 1.0 : at;
  // Per-element orders, whose maximum the host must read; or one order for all.
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

namespace special {

Tensor chebyshev_polynomial_t(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_t", x, n); }
Tensor chebyshev_polynomial_u(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_u", x, n); }
Tensor chebyshev_polynomial_v(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_v", x, n); }
Tensor chebyshev_polynomial_w(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_w", x, n); }
Tensor hermite_polynomial_h(const Operand& x, const Operand& n) { return orthogonal_polynomial("hermite_polynomial_h", x, n); }
Tensor hermite_polynomial_he(const Operand& x, const Operand& n) { return orthogonal_polynomial("hermite_polynomial_he", x, n); }
Tensor laguerre_polynomial_l(const Operand& x, const Operand& n) { return orthogonal_polynomial("laguerre_polynomial_l", x, n); }
Tensor legendre_polynomial_p(const Operand& x, const Operand& n) { return orthogonal_polynomial("legendre_polynomial_p", x, n); }
Tensor shifted_chebyshev_polynomial_t(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_t", x, n);
}
Tensor shifted_chebyshev_polynomial_u(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_u", x, n);
}
Tensor shifted_chebyshev_polynomial_v(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_v", x, n);
}
Tensor shifted_chebyshev_polynomial_w(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_w", x, n);
}

}  // namespace special

}  // namespace naru
