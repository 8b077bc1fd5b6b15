// Eigenvalues and eigenvectors of general square matrices.
#include "autograd/graph/node.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/linalg/lapack.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::batch_of;
using ops::LapackCall;
using Routine = ir::Lapack::Routine;
using Tensors = std::vector<Tensor>;

namespace {

struct Eigen {
  Tensor values, vectors;
};

// Throws PyTorch's error if the loss depends on the phase of the eigenvectors, which the decomposition leaves open.
void require_no_phase(const Tensor& along) {
  if (along.numel() == 0 || ops::holds(all(isclose(imag(along), zeros_like(imag(along)), 1e-2, 1e-2)))) return;
  throw RuntimeError(
      "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss "
      "function "
      "depends on this quantity, so it is ill-defined.");
}

// The gradient with respect to A, given those of its eigenvalues w and eigenvectors v.
Tensor eig_gradient(const Tensor& gw, const Tensor& gv, const Tensor& w, const Tensor& v) {
  const Tensor adjoint = mH(v);
  if (!gv.defined()) return gw.defined() ? linalg::solve(adjoint, gw.unsqueeze(-1) * adjoint) : Tensor();
  const Tensor inner = matmul(adjoint, gv), along = inner.diagonal(0, -2, -1);
  require_no_phase(along.detach());
  const Tensor free = inner - matmul(adjoint, v * real(along).unsqueeze(-2));
  const Tensor i = arange(0, w.size(-1), 1, Options(DType::I64, w.device()));
  const Tensor diagonal = eq(i.unsqueeze(-1), i), gaps = conj(w.unsqueeze(-2) - w.unsqueeze(-1));
  Tensor turned = free / masked_fill(gaps, diagonal, 1.0);
  turned = masked_fill(turned, diagonal, 0.0);
  if (gw.defined()) turned = turned + diag_embed(gw);
  return linalg::solve(adjoint, matmul(turned, adjoint));
}

Eigen eig_of(const Tensor& a, bool vectors) {
  constexpr const char* kOp = "linalg.eig";
  ops::require_square(a, kOp);
  const DType real = real_of(a.dtype());
  if (!is_inexact(a.dtype())) throw RuntimeError("Unknown Complex ScalarType for {}", ops::torch_name(a.dtype()));
  if (real != DType::F32 && real != DType::F64) ops::throw_not_implemented("linalg_eig_out_cpu", a.dtype());
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1);
  const DType type = complex_of(real);
  const NoGrad off;
  const Tensor work = ops::copied_matrices(a.detach(), batch, kOp), like = zeros({}, Options(type, a.device()));
  Eigen f{ops::new_vectors(batch, n, type, a, kOp), ops::new_matrices(batch, n, n, like, kOp)};
  LapackCall call(Routine::Eig, batch, a.dtype());
  call->vectors = vectors;
  call.writes(work).writes(f.values, true);
  if (vectors) call.writes(f.vectors);
  if (n > 0) ops::check_info(call.run(), "torch.linalg.eig", a.dim() > 2);
  return f;
}

Eigen recorded(const Tensor& a) {
  Eigen f = eig_of(a, true);
  autograd::record_all(
      {&f.values, &f.vectors}, "LinalgEigBackward0", {&a}, {},
      [type = a.dtype()](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor ga = eig_gradient(g[0], g[1], saved[0], saved[1]);
        return {ga.defined() ? ops::gradient_as(ga, type) : ga};
      },
      3);
  return f;
}

void require_finite(const Tensor& a) {
  if (a.numel() > 0 && !ops::holds(all(isfinite(a.detach()))))
    throw RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.");
}

}  // namespace

namespace linalg {

std::pair<Tensor, Tensor> eig(const Tensor& a) {
  if (auto y = ops::wrapped("eig", linalg::eig, ops::matrices(a))) return *std::move(y);
  ops::require_square(a, "linalg.eig");
  if (is_inexact(a.dtype())) require_finite(a);
  const Eigen f = recorded(a);
  return {f.values, f.vectors};
}

Tensor eigvals(const Tensor& a) {
  if (auto y = ops::wrapped("eigvals", eigvals, ops::matrices(a))) return *std::move(y);
  ops::require_square(a, "linalg.eigvals");
  if (is_inexact(a.dtype())) require_finite(a);
  return autograd::recording({&a}) ? recorded(a).values : eig_of(a, false).values;
}

}  // namespace linalg
}  // namespace naru
