// Orthogonal factors from Householder reflectors: qr, householder_product, geqrf, ormqr; and LDLᵀ.
#include "autograd/graph/node.h"
#include "autograd/history/constant.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
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

struct Reflectors {
  Tensor a, tau;
};
Reflectors reflectors_of(const Tensor& a, const char* op) {
  const Dims batch = batch_of(a);
  Reflectors r{ops::copied_matrices(a, batch, op), ops::new_vectors(batch, std::min(a.size(-2), a.size(-1)), a.dtype(), a, op)};
  LapackCall(Routine::Qr, batch, a.dtype()).writes(r.a).writes(r.tau, true).run();
  return r;
}

// The first `columns` columns of the product of the reflectors.
Tensor columns_of(const Tensor& a, const Tensor& tau, int64_t columns, const char* op) {
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1);
  Tensor q = ops::new_matrices(batch, m, columns, a, op);
  const int64_t shared = std::min(columns, n);
  const ops::OpOperand from{nullptr, 0.0, a.dtype()};
  if (columns > n) ops::apply_into(ir::op::copy, {&from, 1}, q);
  const Tensor there = a.detach().narrow(-1, 0, shared), here = q.detach().narrow(-1, 0, shared);
  const ops::OpOperand elements{&there, {}, a.dtype()};
  ops::apply_into(ir::op::copy, {&elements, 1}, here);
  const Tensor factors = ops::as_vectors(tau, batch, op);
  // Without reflectors, Q is the identity.
  if (tau.size(-1) == 0 || columns == 0) return columns == 0 ? q : q.zero_() + eye(m, columns, Options(a.dtype(), a.device()));
  LapackCall(Routine::QrVectors, batch, a.dtype()).writes(q).reads(factors, true).run();
  return q;
}

// A = Q R with R (k, n), where Q has k columns. If n > k, A's first k columns determine Q, and the other columns of R are R2 = Qᴴ A2.
Tensor qr_gradient(Tensor gq, Tensor gr, const Tensor& q, const Tensor& r) {
  const int64_t k = r.size(-2), n = r.size(-1);
  if (!gq.defined()) gq = zeros_like(q);
  if (!gr.defined()) gr = zeros_like(r);
  const Tensor r1 = r.narrow(-1, 0, k), g1 = gr.narrow(-1, 0, k);
  Tensor behind;
  if (n > k) {
    const Tensor r2 = r.narrow(-1, k, n - k), g2 = gr.narrow(-1, k, n - k);
    behind = matmul(q, g2);
    gq = gq + matmul(matmul(q, r2), adjoint_of(g2));
  }
  const Tensor m = matmul(r1, adjoint_of(triu(g1))) - matmul(adjoint_of(gq), q);
  Tensor s = tril(m) + adjoint_of(tril(m, -1));
  // The diagonal of R is real.
  if (is_complex(m.dtype())) s = s - diag_embed(complex(zeros_like(real(m.diagonal(0, -2, -1))), imag(m.diagonal(0, -2, -1))));
  const Tensor ga = linalg::solve_triangular(adjoint_of(r1), gq + matmul(q, s), false, false);
  return n > k ? cat({ga, behind}, -1) : ga;
}

}  // namespace

namespace linalg {

std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode) {
  if (auto y = ops::wrapped("qr", qr, ops::matrices(a), mode)) return *std::move(y);
  ops::require_matrices(a, "linalg.qr");
  ops::require_floating(a, "linalg.qr");
  if (mode != "reduced" && mode != "complete" && mode != "r")
    throw RuntimeError("qr received unrecognized mode '{}' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
  ops::require_lapack_type(a, "geqrf_cpu");
  const int64_t m = a.size(-2), k = std::min(m, a.size(-1));
  const bool complete = mode == "complete", only_r = mode == "r";
  Tensor q, r;
  {
    const NoGrad off;
    const Reflectors f = reflectors_of(a, "linalg.qr");
    q = only_r ? empty({0}, Options(a.dtype(), a.device())) : columns_of(f.a, f.tau, complete ? m : k, "linalg.qr");
    r = triu(f.a.narrow(-2, 0, complete ? m : k));
  }
  autograd::record_all(
      {&q, &r}, "LinalgQrBackward0", {&a}, {},
      [only_r, complete](const Tensors& g, const Tensors& saved) -> Tensors {
        if (only_r)
          throw RuntimeError(
              "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if "
              "you "
              "are going to differentiate through linalg.qr.");
        const Tensor &q = saved[0], &r = saved[1];
        if (complete && r.size(-2) > r.size(-1))
          throw RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
        return {qr_gradient(g[0], g[1], q, r)};
      },
      3);
  return {q, r};
}

namespace {

void check_reflectors(const Tensor& a, const Tensor& tau, const char* op) {
  ops::require_defined(a, op, "input"), ops::require_defined(tau, op, "tau");
  if (a.dim() < 2) throw RuntimeError("{}: input must have at least 2 dimensions.", op);
  if (a.size(-2) < a.size(-1)) throw RuntimeError("{}: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
  if (tau.dim() > 0 && a.size(-1) < tau.size(-1))
    throw RuntimeError("{}: input.shape[-1] must be greater than or equal to tau.shape[-1]", op);
  if (a.dim() - tau.dim() != 1)
    throw RuntimeError("{}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal to {}",
                       op, tau.dim(), a.dim());
  const Dims batch = batch_of(a);
  if (!(Dims(std::span<const int64_t>(tau.sizes()).first(tau.sizes().size() - 1)) == batch))
    throw RuntimeError("{}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {}", op, tau.sizes().str());
  if (tau.dtype() != a.dtype())
    throw RuntimeError("{}: tau dtype {} does not match input dtype {}", op, ops::torch_name(tau.dtype()), ops::torch_name(a.dtype()));
  ops::require_one_device(a, tau, op, "input", "tau");
}

// Column i of the reflectors, (*, m, 1): zeros, a one, and the elements below the diagonal.
Tensor reflector(const Tensor& a, int64_t i) {
  const int64_t m = a.size(-2);
  const Tensor below = a.narrow(-1, i, 1).narrow(-2, i + 1, m - i - 1);
  const Options like(a.dtype(), a.device());
  return cat({zeros(ops::with_matrix(batch_of(a), i, 1), like), ones(ops::with_matrix(batch_of(a), 1, 1), like), below}, -2);
}

// Gradient of Q = H1 ... Hk E with respect to the reflectors and tau, where H_i = I - tau v vᴴ. The product right of H_i and the gradient are updated
// step by step: R' = H⁻¹ R and G' = Hᴴ G.
Tensors reflectors_gradient(Tensor g, Tensor r, const Tensor& a, const Tensor& tau, autograd::Needed needed) {
  const int64_t m = a.size(-2), n = a.size(-1), k = tau.size(-1);
  const Options like(a.dtype(), a.device());
  std::vector<Tensor> columns, factors;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor v = reflector(a, i), t = tau.narrow(-1, i, 1).unsqueeze(-1), square = matmul(adjoint_of(v), v);
    const Tensor inverse = t / (t * square - 1.0);
    r = r - matmul(v, matmul(adjoint_of(v), r)) * inverse;
    const Tensor x = matmul(adjoint_of(g), v), y = matmul(adjoint_of(r), v), tc = ops::conjugate(t);
    if (needed[1]) factors.push_back(-matmul(adjoint_of(x), y).squeeze(-1));
    if (needed[0]) {
      const Tensor gv = -(matmul(g, y) * tc + matmul(r, x) * t);
      columns.push_back(cat({zeros(ops::with_matrix(batch_of(a), i + 1, 1), like), gv.narrow(-2, i + 1, m - i - 1)}, -2));
    }
    g = g - matmul(v, adjoint_of(x)) * tc;
  }
  if (n > k && needed[0]) columns.push_back(zeros(ops::with_matrix(batch_of(a), m, n - k), like));
  const auto joined = [](const std::vector<Tensor>& parts, const Tensor& like) {
    return parts.empty() ? zeros_like(like) : cat(parts, -1);
  };
  return {needed[0] ? joined(columns, a) : Tensor(), needed[1] ? joined(factors, tau) : Tensor()};
}

}  // namespace

Tensor householder_product(const Tensor& a, const Tensor& tau) {
  if (auto y = ops::wrapped("householder_product", householder_product, a, tau)) return *std::move(y);
  constexpr const char* kOp = "torch.linalg.householder_product";
  check_reflectors(a, tau, kOp);
  ops::require_lapack_type(a, "orgqr_cpu");
  Tensor q;
  {
    const NoGrad off;
    q = columns_of(a, tau, a.size(-1), kOp);
  }
  autograd::record_all(
      {&q}, "LinalgHouseholderProductBackward0", {&a, &tau}, {&a, &tau},
      [](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        return reflectors_gradient(g[0], saved[2], saved[0], saved[1], needed);
      },
      1);
  return q;
}

std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& a, bool hermitian, bool check_errors) {
  if (auto y = ops::wrapped(ops::kNoCasts, ldl_factor_ex, ops::matrices(a), hermitian, check_errors)) return *std::move(y);
  constexpr const char* kOp = "torch.linalg.ldl_factor_ex";
  ops::require_square(a, kOp);
  ops::require_floating(a, kOp);
  ops::require_lapack_type(a, "ldl_factor_kernel_cpu");
  const Dims batch = batch_of(a);
  Tensor ld = ops::copied_matrices(a.detach(), batch, kOp);
  const Tensor pivots = ops::new_vectors(batch, a.size(-1), DType::I32, a, kOp);
  LapackCall call(Routine::Ldl, batch, a.dtype());
  call->hermitian = hermitian;
  const Tensor info = call.writes(ld).writes(pivots, true).run();
  if (check_errors) ops::check_info(info, kOp, a.dim() > 2);
  return {autograd::record_refused(tril(ld), {&a}, "linalg_ldl_factor_ex"), pivots, info};
}

std::pair<Tensor, Tensor> ldl_factor(const Tensor& a, bool hermitian) {
  const auto [ld, pivots, info] = ldl_factor_ex(a, hermitian);
  ops::check_info(info, "torch.linalg.ldl_factor", a.dim() > 2);
  return {ld, pivots};
}

Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  constexpr const char* kOp = "torch.linalg.ldl_solve";
  ops::require_square(ld, kOp, "LD");
  ops::require_matrices(b, kOp, "B"), ops::require_defined(pivots, kOp, "pivots");
  if (!(pivots.sizes() == Dims(std::span<const int64_t>(ld.sizes()).first(ld.sizes().size() - 1))))
    throw RuntimeError("{}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead", kOp,
                       pivots.sizes().str());
  if (!is_integral(pivots.dtype())) throw RuntimeError("{}: Expected pivots to be integers. Got {}", kOp, ops::torch_name(pivots.dtype()));
  if (ld.dtype() != b.dtype())
    throw RuntimeError("Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
                       ops::torch_name(b.dtype()), ops::torch_name(ld.dtype()));
  if (ld.size(-1) != b.size(-2))
    throw RuntimeError("Incompatible matrix sizes for {}: each A matrix is {} by {} but each b matrix is {} by {}", kOp, ld.size(-1),
                       ld.size(-1), b.size(-2), b.size(-1));
  ops::require_lapack_type(ld, "ldl_solve_kernel_cpu");
  ops::require_one_device(ld, b, kOp, "LD", "B"), ops::require_one_device(ld, pivots, kOp, "LD", "pivots");
  const int64_t n = ld.size(-1);
  const Tensor exchanges = pivots.to(DType::I32);
  if (exchanges.numel() > 0 && !exchanges.device().is_meta())
    for (const int64_t p : exchanges.to_ints())
      if (p == 0 || p > n || p < -n)
        throw RuntimeError("{}: pivots must be those of ldl_factor, from 1 to {}, or -1 to -{}; got {}", kOp, n, n, p);
  const Dims batch = broadcast_shapes(batch_of(ld), batch_of(b));
  const Tensor x = ops::copied_matrices(b, batch, kOp);
  const Tensor factors = ops::as_matrices(ld, batch, kOp), rows = ops::as_vectors(exchanges, batch, kOp);
  LapackCall call(Routine::LdlSolve, batch, x.dtype());
  call->hermitian = hermitian;
  call.reads(factors).reads(rows, true).writes(x).run();
  return autograd::record_refused(x, {&ld, &b}, "linalg_ldl_solve");
}

}  // namespace linalg

std::pair<Tensor, Tensor> geqrf(const Tensor& a) {
  if (auto y = ops::wrapped("geqrf", geqrf, ops::matrices(a))) return *std::move(y);
  ops::require_defined(a, "geqrf", "input");
  if (a.dim() < 2) throw RuntimeError("torch.geqrf: input must have at least 2 dimensions.");
  ops::require_lapack_type(a, "geqrf_cpu");
  const Reflectors f = reflectors_of(a, "geqrf");
  autograd::record_all({&f.a, &f.tau}, "GeqrfBackward0", {&a}, {},
                       [](const Tensors&, const Tensors&) -> Tensors { autograd::throw_underived("geqrf"); });
  return {f.a, f.tau};
}

Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool transpose) {
  if (auto y = ops::wrapped("ormqr", ormqr, a, tau, c, left, transpose)) return *std::move(y);
  constexpr const char* kOp = "torch.ormqr";
  ops::require_defined(a, kOp, "input"), ops::require_defined(tau, kOp, "tau"), ops::require_defined(c, kOp, "other");
  if (a.dim() < 2) throw RuntimeError("{}: input must have at least 2 dimensions.", kOp);
  if (c.dim() < 2) throw RuntimeError("{}: other must have at least 2 dimensions.", kOp);
  const int64_t side = left ? -2 : -1;
  if (tau.dim() > 0 && c.size(side) < tau.size(-1))
    throw RuntimeError("{}: other.shape[{}] must be greater than or equal to tau.shape[-1]", kOp, side);
  if (c.size(side) != a.size(-2)) throw RuntimeError("{}: other.shape[{}] must be equal to input.shape[-2]", kOp, side);
  if (tau.dim() > 0 && tau.size(-1) != std::min(c.size(side), a.size(-1)))
    throw RuntimeError("{}: tau.shape[-1] must be equal to min(other.shape[{}], input.shape[-1])", kOp, side);
  if (!(batch_of(c) == batch_of(a)))
    throw RuntimeError("{}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {}", kOp, batch_of(c).str());
  if (c.dtype() != a.dtype())
    throw RuntimeError("{}: Expected input and other to have the same dtype, but input has dtype {} and other has dtype {}", kOp,
                       ops::torch_name(a.dtype()), ops::torch_name(c.dtype()));
  // Columns beyond those of a square matrix hold no reflectors.
  if (a.size(-1) > a.size(-2)) return ormqr(a.narrow(-1, 0, a.size(-2)), tau, c, left, transpose);
  linalg::check_reflectors(a, tau, kOp);
  ops::require_lapack_type(a, "ormqr_cpu");
  ops::require_one_device(a, c, kOp, "input", "other");
  // With autograd, use the whole of Q, whose gradient is known.
  if (autograd::recording({&a, &tau, &c})) {
    const int64_t m = a.size(-2), n = a.size(-1);
    Tensor whole = a;
    if (m > n) {  // not by ?:, see unique_on_device
      const Tensor rest = zeros(ops::with_matrix(batch_of(a), m, m - n), Options(a.dtype(), a.device()));
      whole = cat({a, rest}, -1);
    }
    const Tensor q = linalg::householder_product(whole, tau), turned = transpose ? adjoint_of(q) : q;
    return left ? matmul(turned, c) : matmul(c, turned);
  }
  const Dims batch = batch_of(a);
  // C Q = (Qᴴ Cᴴ)ᴴ.
  const Tensor x = ops::copied_matrices(left ? c : adjoint_of(c), batch, kOp);
  const Tensor matrix = ops::as_matrices(a, batch, kOp), factors = ops::as_vectors(tau, batch, kOp);
  LapackCall call(Routine::QrProduct, batch, a.dtype());
  call->transposed = transpose == left;
  call.reads(matrix).reads(factors, true).writes(x).run();
  return left ? x : adjoint_of(x);
}

}  // namespace naru
