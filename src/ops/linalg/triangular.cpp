// Triangular matrices: solve_triangular, triangular_solve, cholesky and solvers that use its factors.
#include "autograd/graph/node.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::adjoint_of;
using ops::batch_of;
using ops::flipped;
using ops::LapackCall;
using ops::sum_to;
using Routine = ir::Lapack::Routine;
using Tensors = std::vector<Tensor>;

namespace linalg {
namespace {

// Records nothing for autograd. If A is row-major, its memory is the transposed matrix, so the other triangle is passed.
Tensor triangle_solved(const Tensor& a, const Tensor& b, bool upper, bool left, bool ones) {
  constexpr const char* kOp = "linalg.solve_triangular";
  const Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  const Tensor x = ops::copied_matrices(left ? b : flipped(b.detach()), batch, kOp);
  const bool by_rows = a.strides().back() == 1 && a.size(-1) > 1;
  const Tensor matrix = ops::as_matrices(by_rows ? flipped(a.detach()) : a, batch, kOp);
  LapackCall call(Routine::TriangularSolve, batch, x.dtype());
  call->upper = upper != by_rows;
  call->transposed = by_rows != !left;
  call->ones = ones;
  call.reads(matrix).writes(x).run();
  return left ? x : flipped(x);
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  constexpr const char* kOp = "linalg.solve_triangular";
  ops::require_square(a, kOp);
  ops::require_matrices(b, kOp, "B");
  if (a.size(-2) != b.size(left ? -2 : -1))
    throw RuntimeError("{}: Incompatible shapes of A and B for the equation {} = B ({}x{} and {}x{})", kOp, left ? "AX" : "XA", a.size(-2),
                       a.size(-1), b.size(-2), b.size(-1));
  if (a.dtype() != b.dtype())
    throw RuntimeError("{}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead", kOp,
                       ops::torch_name(a.dtype()), ops::torch_name(b.dtype()));
  ops::require_lapack_type(a, "triangular_solve_cpu");
  ops::require_one_device(a, b, kOp);
  const Tensor x = triangle_solved(a, b, upper, left, unitriangular);
  autograd::record_all(
      {&x}, "LinalgSolveTriangularBackward0", {&a, &b}, {&a},
      [=, shape = b.sizes()](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        const Tensor gb = solve_triangular(adjoint_of(saved[0]), g[0], !upper, left, unitriangular);
        Tensor ga;
        if (needed[0]) {
          ga = -(left ? matmul(gb, adjoint_of(saved[1])) : matmul(adjoint_of(saved[1]), gb));
          const int64_t beside = unitriangular ? 1 : 0;
          ga = sum_to(upper ? triu(ga, beside) : tril(ga, -beside), saved[0].sizes());
        }
        return {ga, needed[1] ? sum_to(gb, shape) : Tensor()};
      },
      1);
  return x;
}

std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  if (auto y = ops::wrapped("cholesky_ex", cholesky_ex, ops::matrices(a), upper, check_errors)) return *std::move(y);
  constexpr const char* kOp = "linalg.cholesky";
  ops::require_square(a, kOp);
  ops::require_floating(a, kOp);
  ops::require_lapack_type(a, "cholesky_cpu");
  const Dims batch = batch_of(a);
  const Tensor factor = ops::copied_matrices(a, batch, kOp);
  LapackCall call(Routine::Cholesky, batch, a.dtype());
  call->upper = upper;
  const Tensor info = call.writes(factor).run();
  autograd::record_all(
      {&factor}, "LinalgCholeskyExBackward0", {&a}, {},
      [upper](const Tensors& g, const Tensors& saved) -> Tensors {
        // For L: L⁻ᴴ S L⁻¹ / 2, where S is the lower triangle of Lᴴ gL, mirrored to the upper one.
        const Tensor l = upper ? adjoint_of(saved[0]) : saved[0], gl = upper ? adjoint_of(g[0]) : g[0];
        const Tensor phi = matmul(adjoint_of(l), gl);
        const Tensor s = tril(phi) + adjoint_of(tril(phi, -1));
        return {solve_triangular(l, solve_triangular(adjoint_of(l), s, true), false, false) * 0.5};
      },
      1);
  if (check_errors) ops::check_info(info, "linalg.cholesky_ex", a.dim() > 2);
  return {factor, info};
}

Tensor cholesky(const Tensor& a, bool upper) {
  if (auto y = ops::wrapped("cholesky", cholesky, a, upper)) return *std::move(y);
  auto [factor, info] = cholesky_ex(a, upper);
  ops::check_info(info, "linalg.cholesky", a.dim() > 2);
  return factor;
}

}  // namespace linalg

namespace {

// Checks of the older (non-linalg) functions.
void check_pair(const Tensor& b, const Tensor& a, const char* op) {
  if (a.dtype() != b.dtype())
    throw RuntimeError("Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
                       ops::torch_name(b.dtype()), ops::torch_name(a.dtype()));
  if (a.size(-1) != a.size(-2))
    throw RuntimeError("A must be batches of square matrices, but they are {} by {} matrices", a.size(-2), a.size(-1));
  if (a.size(-1) != b.size(-2))
    throw RuntimeError("Incompatible matrix sizes for {}: each A matrix is {} by {} but each b matrix is {} by {}", op, a.size(-1),
                       a.size(-1), b.size(-2), b.size(-1));
  ops::require_one_device(a, b, op, "A", "b");
}

// The gradient with respect to the factor of a function of L Lᴴ (Uᴴ U). `symmetric`: the gradient with respect to L Lᴴ plus its adjoint. As in
// PyTorch, it is not restricted to the triangle that is read.
Tensor gradient_of_factor(const Tensor& symmetric, const Tensor& factor, bool upper) {
  return upper ? matmul(factor, symmetric) : matmul(symmetric, factor);
}

}  // namespace

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  if (auto y = ops::wrapped("cholesky_solve", cholesky_solve, b, factor, upper)) return *std::move(y);
  ops::require_defined(b, "cholesky_solve", "b"), ops::require_defined(factor, "cholesky_solve", "u");
  if (b.dim() < 2) throw RuntimeError("b should have at least 2 dimensions, but has {} dimensions instead", b.dim());
  if (factor.dim() < 2) throw RuntimeError("u should have at least 2 dimensions, but has {} dimensions instead", factor.dim());
  check_pair(b, factor, "cholesky_solve");
  ops::require_lapack_type(factor, "cholesky_solve_cpu");
  const Dims batch = broadcast_shapes(batch_of(factor), batch_of(b));
  const Tensor x = ops::copied_matrices(b, batch, "cholesky_solve"), matrix = ops::as_matrices(factor, batch, "cholesky_solve");
  LapackCall call(Routine::CholeskySolve, batch, x.dtype());
  call->upper = upper;
  call.reads(matrix).writes(x).run();
  autograd::record_all(
      {&x}, "CholeskySolveBackward0", {&b, &factor}, {&factor},
      [upper, shape = b.sizes()](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        const Tensor gb = cholesky_solve(g[0], saved[0], upper);
        const Tensor for_b = needed[0] ? sum_to(gb, shape) : Tensor();
        if (!needed[1]) return {for_b, Tensor()};
        const Tensor s = matmul(gb, adjoint_of(saved[1]));
        return {for_b, sum_to(-gradient_of_factor(s + adjoint_of(s), saved[0], upper), saved[0].sizes())};
      },
      1);
  return x;
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  if (auto y = ops::wrapped("cholesky_inverse", cholesky_inverse, ops::matrices(factor), upper)) return *std::move(y);
  ops::require_square(factor, "cholesky_inverse");
  ops::require_lapack_type(factor, "cholesky_inverse_out_cpu");
  const Dims batch = batch_of(factor);
  const Tensor x = ops::copied_matrices(factor, batch, "cholesky_inverse");
  LapackCall call(Routine::CholeskyInverse, batch, x.dtype());
  call->upper = upper;
  const Tensor info = call.writes(x).run();
  ops::check_info(info, "cholesky_inverse", factor.dim() > 2);
  autograd::record_all(
      {&x}, "CholeskyInverseBackward0", {&factor}, {&factor},
      [upper](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor s = matmul(saved[1], matmul(g[0] + adjoint_of(g[0]), saved[1]));
        return {-gradient_of_factor(s, saved[0], upper)};
      },
      1);
  return x;
}

std::pair<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unitriangular) {
  if (auto y = ops::wrapped("triangular_solve", triangular_solve, b, a, upper, transpose, unitriangular)) return *std::move(y);
  ops::require_defined(b, "triangular_solve", "b"), ops::require_defined(a, "triangular_solve", "A");
  if (b.dim() < 2)
    throw RuntimeError("torch.triangular_solve: Expected b to have at least 2 dimensions, but it has {} dimensions instead", b.dim());
  if (a.dim() < 2)
    throw RuntimeError("torch.triangular_solve: Expected A to have at least 2 dimensions, but it has {} dimensions instead", a.dim());
  check_pair(b, a, "triangular_solve");
  const Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  const Tensor copy = a.expand(ops::with_matrix(batch, a.size(-2), a.size(-1))).clone();
  return {linalg::solve_triangular(transpose ? flipped(a) : a, b, transpose ? !upper : upper, true, unitriangular), copy};
}

}  // namespace naru
