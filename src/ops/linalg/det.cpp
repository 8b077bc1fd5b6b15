// Determinants: det, slogdet, logdet.
#include <limits>

#include "autograd/graph/node.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/linalg/lu.h"
#include "ops/tensor/limits.h"

namespace naru {

using ops::adjoint_of;
using Tensors = std::vector<Tensor>;

namespace {

Tensor diagonal_of(const Tensor& t) { return t.diagonal(0, -2, -1); }
// (*, n) as diagonal matrices (*, n, n).
Tensor on_diagonal(const Tensor& d) {
  const int64_t n = d.size(-1);
  return d.unsqueeze(-1) * eye(n, n, Options(d.dtype(), d.device()));
}

// The sign of the row permutation: 1 or -1 for an even or odd number of exchanges.
Tensor parity(const Tensor& pivots, DType type) {
  const int64_t n = pivots.size(-1);
  const Tensor exchanges = sum(ne(pivots, arange(1, n + 1, 1, Options(DType::I32, pivots.device()))), Dims{-1});
  return 1.0 - remainder(exchanges, 2).to(type) * 2.0;
}

// Makes the U of a singular matrix invertible: returns epsilon for each 0 on its diagonal. The gradient of the determinant, its value times the
// inverse transpose, is continuous, so the error is of the order of rounding.
Tensor nudge(const Tensor& lu) {
  const double epsilon = ops::epsilon_of(lu.dtype());
  const Tensor d = diagonal_of(lu), scale = amax(abs(d), Dims{-1}, true);
  return on_diagonal(where(eq(d, 0.0), where(eq(scale, 0.0), 1.0, scale) * epsilon, zeros_like(scale)));
}

Tensor det_gradient(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots) {
  if (a.size(-1) == 0) return zeros_like(a);
  Tensor shift;
  {
    const NoGrad off;
    shift = nudge(lu).to(lu.dtype());
  }
  const Tensor column = g.unsqueeze(-1).unsqueeze(-1);
  if (!grad_enabled()) {
    const Tensor nudged = lu + shift;
    const Tensor value = ops::conjugate(prod(diagonal_of(nudged), -1) * parity(pivots, a.dtype())).unsqueeze(-1).unsqueeze(-1);
    return ops::solved(nudged, pivots, value * column * ops::identity_like(a, a.size(-1)), true, true, "linalg.det");
  }
  Tensor near;
  {
    const NoGrad off;
    const auto [p, l, u] = lu_unpack(lu, pivots);
    near = matmul(p, matmul(l, shift));
  }
  const Tensor b = a + near;
  return adjoint_of(linalg::inv(b)) * ops::conjugate(linalg::det(b)).unsqueeze(-1).unsqueeze(-1) * column;
}

}  // namespace

namespace linalg {

Tensor det(const Tensor& a) {
  if (auto y = ops::wrapped(ops::kNoCasts, det, ops::matrices(a))) return *std::move(y);
  ops::require_square(a, "linalg.det");
  ops::require_floating(a, "linalg.det");
  ops::require_lapack_type(a, "lu_cpu");
  const ops::Lu f = ops::factored(a, "linalg.det");
  Tensor value;
  {
    const NoGrad off;
    value = prod(diagonal_of(f.lu), -1) * parity(f.pivots, a.dtype());
  }
  return autograd::record(value, "LinalgDetBackward0", {&a}, {&a, &f.lu, &f.pivots}, [](const Tensors& g, const Tensors& saved) -> Tensors {
    return {det_gradient(g[0], saved[0], saved[1], saved[2])};
  });
}

namespace {

// The factor of A⁻ᴴ in the gradient. A real sign is constant wherever it has a derivative; a complex sign rotates with the imaginary part of the
// logarithm.
Tensor slogdet_factor(const Tensor& g_sign, const Tensor& g_log, const Tensor& sign) {
  if (!is_complex(sign.dtype()) || !g_sign.defined()) return g_log;
  const Tensor turn = -imag(conj(g_sign) * sign);
  return complex(g_log.defined() ? g_log : zeros_like(turn), turn);
}

std::pair<Tensor, Tensor> sign_and_log(const Tensor& a, const char* op) {
  if (auto y = ops::wrapped(ops::kNoCasts, sign_and_log, ops::matrices(a), op)) return *std::move(y);
  ops::require_square(a, op);
  ops::require_floating(a, op, false);
  const ops::Lu f = ops::factored(a, op);
  Tensor sign, log;
  {
    const NoGrad off;
    const Tensor d = diagonal_of(f.lu);
    sign = prod(sgn(d), -1) * parity(f.pivots, a.dtype());
    log = sum(naru::log(abs(d)), Dims{-1});
  }
  autograd::record_all(
      {&sign, &log}, "LinalgSlogdetBackward0", {&a}, {&a, &f.lu, &f.pivots},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor& a = saved[0];
        const Tensor factor = slogdet_factor(g[0], g[1], saved[3]);
        if (!factor.defined() || a.size(-1) == 0) return {zeros_like(a)};
        const Tensor right = factor.unsqueeze(-1).unsqueeze(-1) * ops::identity_like(a, a.size(-1));
        return {grad_enabled() ? solve(adjoint_of(a), right) : ops::solved(saved[1], saved[2], right, true, true, "linalg.slogdet")};
      },
      1);
  return {sign, log};
}

}  // namespace

std::pair<Tensor, Tensor> slogdet(const Tensor& a) { return sign_and_log(a, "linalg.slogdet"); }

}  // namespace linalg

// NaN if a real determinant is negative.
Tensor logdet(const Tensor& a) {
  const auto [sign, log] = linalg::sign_and_log(a, "logdet");
  if (is_complex(sign.dtype())) return naru::log(sign) + log;
  return where(eq(sign, -1.0), std::numeric_limits<double>::quiet_NaN(), log);
}

}  // namespace naru
