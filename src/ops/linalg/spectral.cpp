// Singular values and eigenvalues: svd, svdvals, eigh, eigvalsh, and short compositions of them.
#include <limits>

#include "autograd/graph/node.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::adjoint_of;
using ops::batch_of;
using ops::LapackCall;
using Routine = ir::Lapack::Routine;
using Tensors = std::vector<Tensor>;

namespace {

Tensor column(const Tensor& v) { return v.unsqueeze(-1); }
Tensor row(const Tensor& v) { return v.unsqueeze(-2); }
// A mask that is true on the diagonal of n by n matrices.
Tensor on_diagonal(int64_t n, Device device) {
  const Tensor i = arange(0, n, 1, Options(DType::I64, device));
  return eq(column(i), row(i));
}
// The diagonal matrix of v.
Tensor diagonal_matrix(const Tensor& v) { return where(on_diagonal(v.size(-1), v.device()), row(v), 0.0); }
// A matrix minus its adjoint.
Tensor skew(const Tensor& t) { return t - adjoint_of(t); }

// Eigenvectors and singular vectors of complex matrices are determined up to a factor e^{i phi}. A loss depends on it if the imaginary parts along
// the diagonal of `inner` are not 0: RuntimeError with PyTorch's text.
void require_no_phase(const Tensor& inner, const char* text) {
  if (!is_complex(inner.dtype()) || inner.numel() == 0) return;
  const Tensor along = imag(inner.detach().diagonal(0, -2, -1));
  if (!allclose(along, zeros_like(along), 1e-2, 1e-2)) throw RuntimeError("{}", text);
}
constexpr const char* kSvdPhase =
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function "
    "depends on this phase term, making it ill-defined.";
constexpr const char* kEighPhase =
    "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
    "function depends on this quantity, so it is ill-defined.";

struct Svd {
  Tensor u, s, vt;
};

// The gradient of A = U S Vᴴ, where U has as many columns, and Vᴴ as many rows, as S has elements.
Tensor svd_gradient(Tensor gu, const Tensor& gs, Tensor gvt, const Svd& f) {
  const auto& [u, s, vt] = f;
  const int64_t m = u.size(-2), n = vt.size(-1), k = s.size(-1);
  if (!gu.defined() && !gvt.defined()) return gs.defined() ? matmul(u * row(gs), vt) : Tensor();
  const Tensor same = on_diagonal(k, s.device());
  // The gaps s_j² - s_i²; the diagonal is arbitrary (nonzero).
  const Tensor gaps = where(same, 1.0, row(s * s) - column(s * s));
  Tensor inner = gs.defined() ? diagonal_matrix(gs) : Tensor();
  const auto add = [](const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; };
  const Tensor turn_u = gu.defined() ? skew(matmul(adjoint_of(u), gu)) : Tensor();
  const Tensor turn_v = gvt.defined() ? skew(matmul(vt, adjoint_of(gvt))) : Tensor();
  require_no_phase(!turn_v.defined() ? turn_u : add(turn_u, turn_v), kSvdPhase);
  if (gu.defined()) inner = add(inner, turn_u / gaps * row(s));
  if (gvt.defined()) inner = add(inner, column(s) * (turn_v / gaps));
  // A rotation of both vectors together changes only their common phase.
  if (is_complex(u.dtype()) && gu.defined() && gvt.defined())
    inner = inner + where(same, column(turn_u.diagonal(0, -2, -1) / (s * 2.0)), 0.0);
  Tensor ga = matmul(u, matmul(inner, vt));
  if (gu.defined() && m > k) {
    const Tensor outside = gu - matmul(u, matmul(adjoint_of(u), gu));
    ga = ga + matmul(outside / row(s), vt);
  }
  if (gvt.defined() && n > k) {
    const Tensor outside = gvt - matmul(matmul(gvt, adjoint_of(vt)), vt);
    ga = ga + matmul(u, outside / column(s));
  }
  return ga;
}

Svd empty_svd(const Tensor& a, const Dims& batch, bool full, const char* op) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const Options like(a.dtype(), a.device());
  Svd f{ops::new_matrices(batch, m, full ? m : 0, a, op), ops::new_vectors(batch, 0, real_of(a.dtype()), a, op),
        ops::new_matrices(batch, full ? n : 0, n, a, op)};
  if (full) f.u = f.u.zero_() + eye(m, m, like), f.vt = f.vt.zero_() + eye(n, n, like);
  return f;
}

Svd svd_of(const Tensor& a, bool full, bool vectors) {
  constexpr const char* kOp = "linalg.svd";
  ops::require_matrices(a, kOp);
  ops::require_floating(a, kOp);
  ops::require_lapack_type(a, "linalg_svd_cpu");
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  Svd f;
  if (k == 0) {
    const NoGrad off;
    f = empty_svd(a, batch, full, kOp);
  } else {
    const Tensor work = ops::copied_matrices(a, batch, kOp);
    f.s = ops::new_vectors(batch, k, real_of(a.dtype()), a, kOp);
    LapackCall call(Routine::Svd, batch, a.dtype());
    call.writes(work).writes(f.s, true);
    call->vectors = vectors;
    if (vectors) {
      f.u = ops::new_matrices(batch, m, full ? m : k, a, kOp), f.vt = ops::new_matrices(batch, full ? n : k, n, a, kOp);
      call.writes(f.u).writes(f.vt);
    }
    ops::check_info(call.run(), kOp, a.dim() > 2);
  }
  if (!vectors) return f;
  autograd::record_all(
      {&f.u, &f.s, &f.vt}, "LinalgSvdBackward0", {&a}, {},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        // Singular vectors beyond the singular values are not determined: drop their gradients.
        const int64_t k = saved[1].size(-1);
        const auto first = [&](const Tensor& t, int64_t dim) { return t.defined() && t.size(dim) > k ? t.narrow(dim, 0, k) : t; };
        return {svd_gradient(first(g[0], -1), g[1], first(g[2], -2), {first(saved[0], -1), saved[1], first(saved[2], -2)})};
      },
      7);
  return f;
}

struct HermitianEigen {
  Tensor values, vectors;
};

HermitianEigen eigh_of(const Tensor& a, std::string_view triangle, bool vectors) {
  constexpr const char* kOp = "linalg.eigh";
  ops::require_square(a, kOp);
  if (triangle != "L" && triangle != "U" && triangle != "l" && triangle != "u")
    throw RuntimeError("Expected UPLO argument to be 'L' or 'U', but got {}", triangle);
  ops::require_lapack_type(a, "linalg_eigh_cpu");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1);
  HermitianEigen f{ops::new_vectors(batch, n, real_of(a.dtype()), a, kOp), ops::copied_matrices(a, batch, kOp)};
  LapackCall call(Routine::Eigh, batch, a.dtype());
  call->upper = triangle == "U" || triangle == "u";
  call->vectors = vectors;
  ops::check_info(call.writes(f.vectors).writes(f.values, true).run(), kOp, a.dim() > 2);
  if (!vectors) return f;
  autograd::record_all(
      {&f.values, &f.vectors}, "LinalgEighBackward0", {&a}, {},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor &w = saved[0], &v = saved[1];
        if (!g[1].defined()) return {g[0].defined() ? matmul(v * row(g[0]), adjoint_of(v)) : Tensor()};
        const Tensor same = on_diagonal(w.size(-1), w.device()), turn = matmul(adjoint_of(v), g[1]);
        require_no_phase(turn, kEighPhase);
        Tensor inner = skew(turn) * 0.5 / where(same, 1.0, row(w) - column(w));
        if (g[0].defined()) inner = inner + diagonal_matrix(g[0]);
        return {matmul(v, matmul(inner, adjoint_of(v)))};
      },
      3);
  return f;
}

bool wants_vectors(const Tensor& a) { return autograd::recording({&a}); }

}  // namespace

namespace linalg {

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices) {
  if (auto y = ops::wrapped("svd", linalg::svd, ops::matrices(a), full_matrices)) return *std::move(y);
  const Svd f = svd_of(a, full_matrices, true);
  return {f.u, f.s, f.vt};
}

// The gradient needs the singular vectors.
Tensor svdvals(const Tensor& a) {
  if (auto y = ops::wrapped("svdvals", svdvals, ops::matrices(a))) return *std::move(y);
  return svd_of(a, false, wants_vectors(a)).s;
}

std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view triangle) {
  if (auto y = ops::wrapped("eigh", eigh, ops::matrices(a), triangle)) return *std::move(y);
  const HermitianEigen f = eigh_of(a, triangle, true);
  return {f.values, f.vectors};
}

Tensor eigvalsh(const Tensor& a, std::string_view triangle) {
  if (auto y = ops::wrapped("eigvalsh", eigvalsh, ops::matrices(a), triangle)) return *std::move(y);
  return eigh_of(a, triangle, wants_vectors(a)).values;
}

Tensor matrix_sqrth(const Tensor& a) {
  ops::require_square(a, "linalg.matrix_sqrth");
  ops::require_floating(a, "linalg.matrix_sqrth", false);
  const auto [w, v] = eigh(a);
  return matmul(v * row(sqrt(w)), adjoint_of(v));
}

std::pair<Tensor, Tensor> polar(const Tensor& a) {
  if (auto y = ops::wrapped(ops::kNoCasts, polar, ops::matrices(a))) return *std::move(y);
  ops::require_matrices(a, "linalg.polar");
  if (a.size(-2) < a.size(-1))
    throw RuntimeError("linalg.polar: input must have at least as many rows as columns, but got {} by {} matrices", a.size(-2), a.size(-1));
  ops::require_floating(a, "linalg.polar");
  Tensor u, h;
  {
    const NoGrad off;
    const auto [left, s, vt] = linalg::svd(a, false);
    u = matmul(left, vt), h = matmul(adjoint_of(vt) * row(s), vt);
  }
  autograd::record_all(
      {&u, &h}, "LinalgPolarBackward0", {&a}, {},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor &u = saved[0], &h = saved[1];
        // Uᴴ dA = W H + dH with skew W = Uᴴ dU, so W H + H W = Uᴴ dA - dAᴴ U: a Sylvester equation, solved in the eigenbasis of H.
        const Tensor gh = g[1].defined() ? (g[1] + adjoint_of(g[1])) * 0.5 : zeros_like(h);
        const Tensor gu = g[0].defined() ? g[0] : zeros_like(u);
        const auto [w, v] = eigh(h);
        // The gradient that reaches W, because dH = Uᴴ dA - W H.
        const Tensor gw = skew(matmul(adjoint_of(u), gu) - matmul(gh, h)) * 0.5;
        const Tensor turned = matmul(adjoint_of(v), matmul(gw, v)) / (row(w) + column(w));
        const Tensor y = matmul(v, matmul(turned, adjoint_of(v)));
        Tensor ga = matmul(u, gh + y * 2.0);
        if (u.size(-2) > u.size(-1) && g[0].defined()) {
          // The part of dU outside the column space of U: (I - U Uᴴ) dA H⁻¹.
          const Tensor outside = gu - matmul(u, matmul(adjoint_of(u), gu));
          ga = ga + solve(h, outside, false);
        }
        return {ga};
      },
      3);
  return {u, h};
}

}  // namespace linalg

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool some, bool compute_uv) {
  ops::require_defined(a, "svd", "input");
  if (a.dim() < 2) throw RuntimeError("linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead", a.dim());
  if (compute_uv) {
    auto [u, s, vt] = linalg::svd(a, !some);
    return {u, s, adjoint_of(vt)};
  }
  const Options like(a.dtype(), a.device());
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1);
  return {zeros(ops::with_matrix(batch, m, m), like), linalg::svdvals(a), zeros(ops::with_matrix(batch, n, n), like)};
}

}  // namespace naru
