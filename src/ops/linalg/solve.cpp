// LU factorization and the solvers based on it: solve, inv, lu, lu_factor, lu_solve, lu_unpack.
#include "autograd/graph/node.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/linalg/lu.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::adjoint_of;
using ops::batch_of;
using ops::flipped;
using ops::LapackCall;
using ops::sum_to;
using Routine = ir::Lapack::Routine;
using Tensors = std::vector<Tensor>;

namespace ops {

Lu factored(const Tensor& a, const char* op) {
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1);
  Lu f{copied_matrices(a, batch, op), new_vectors(batch, std::min(m, n), DType::I32, a, op), {}};
  f.info = LapackCall(Routine::Lu, batch, a.dtype()).writes(f.lu).writes(f.pivots, true).run();
  return f;
}

Tensor solved(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint, const char* op) {
  const Dims batch = broadcast_shapes(batch_of(lu), batch_of(b));
  // X A = B is equivalent to Aᴴ Xᴴ = Bᴴ.
  const Tensor x = copied_matrices(left ? b : ops::adjoint_of(b.detach()), batch, op);
  const Tensor factors = as_matrices(lu, batch, op), exchanges = as_vectors(pivots, batch, op);
  LapackCall call(Routine::LuSolve, batch, x.dtype());
  call->transposed = adjoint != !left;
  call.reads(factors).reads(exchanges, true).writes(x).run();
  return left ? x : ops::adjoint_of(x);
}

}  // namespace ops

namespace linalg {
namespace {

// Checks that the right side's shape fits a square A.
void check_right_side(const Tensor& a, const Tensor& b, bool left, const char* op) {
  ops::require_matrices(b, op, "B");
  if (a.size(-2) != b.size(left ? -2 : -1))
    throw RuntimeError("{}: Incompatible shapes of A and B for the equation {} = B ({}x{} and {}x{})", op, left ? "AX" : "XA", a.size(-2),
                       a.size(-1), b.size(-2), b.size(-1));
}

// The gradient with respect to A, where A X = B or X A = B and gb is the gradient with respect to B; reduced to A's batch shape.
Tensor gradient_of_matrix(const Tensor& gb, const Tensor& x, bool left, const Dims& shape) {
  return sum_to(-(left ? matmul(gb, adjoint_of(x)) : matmul(adjoint_of(x), gb)), shape);
}

std::pair<Tensor, Tensor> solve_matrices(const Tensor& a, const Tensor& b, bool left) {
  const ops::Lu f = ops::factored(a, "linalg.solve");
  const Tensor x = ops::solved(f.lu, f.pivots, b, left, false, "linalg.solve");
  autograd::record_all({&x}, "LinalgSolveExBackward0", {&a, &b}, {&a, &f.lu, &f.pivots},
                       autograd::WithJvp(
                           [left, shape = b.sizes()](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                             const Tensor gb = grad_enabled() ? solve(adjoint_of(saved[0]), g[0], left)
                                                              : ops::solved(saved[1], saved[2], g[0], left, true, "linalg.solve");
                             return {needed[0] ? gradient_of_matrix(gb, saved[3], left, saved[0].sizes()) : Tensor(),
                                     needed[1] ? sum_to(gb, shape) : Tensor()};
                           },
                           // A X' = B' - A' X
                           [left](const Tensors& t, const Tensors& saved) {
                             Tensor right = t[1];
                             if (t[0].defined()) right = autograd::added(right, -(left ? matmul(t[0], saved[3]) : matmul(saved[3], t[0])));
                             return solve(saved[0], right, left);
                           }),
                       1);
  return {x, f.info};
}

}  // namespace

std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  constexpr const char* kOp = "linalg.solve";
  ops::require_square(a, kOp);
  ops::require_defined(b, kOp, "B");
  ops::require_floating(a, kOp);
  if (a.dtype() != b.dtype())
    throw RuntimeError("{}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead", kOp,
                       ops::torch_name(a.dtype()), ops::torch_name(b.dtype()));
  ops::require_lapack_type(a, "lu_cpu");
  ops::require_one_device(a, b, kOp, "A", "B");
  const bool vector = ops::is_vector_right_side(a, b);
  if (vector && !left)
    throw RuntimeError(
        "{}: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
        "equivalent to B / A.squeeze(-1)",
        kOp);
  const Tensor right = vector ? b.unsqueeze(-1) : b;
  check_right_side(a, right, left, kOp);
  const auto entries = [&] {
    const batching::Batch batch{&a, &right};
    const int64_t rank = std::max(a.dim(), right.dim());
    auto [x, info] = batch.entry(solve_ex(batch.whole_aligned(a, rank), batch.whole_aligned(right, rank), left, check_errors));
    return std::pair(vector ? x.squeeze(-1) : x, info);
  };
  if (auto y = ops::by_rules(a, right, ops::BatchRule{entries})) return *std::move(y);
  auto [x, info] = solve_matrices(a, right, left);
  if (check_errors) ops::check_info(info, "torch.linalg.solve_ex", a.dim() > 2);
  return {vector ? x.squeeze(-1) : x, info};
}

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  if (auto y = ops::wrapped("solve", solve, a, b, left)) return *std::move(y);
  auto [x, info] = solve_ex(a, b, left, false);
  ops::check_info(info, "torch.linalg.solve", a.dim() > 2);
  return x;
}

std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors) {
  if (auto y = ops::wrapped("inv_ex", inv_ex, ops::matrices(a), check_errors)) return *std::move(y);
  ops::require_square(a, "linalg.inv");
  ops::require_floating(a, "linalg.inv", false);
  const ops::Lu f = ops::factored(a, "linalg.inv");
  const Tensor y = ops::solved(f.lu, f.pivots, eye(a.size(-1), -1, Options(a.dtype(), a.device())), true, false, "linalg.inv");
  autograd::record_all({&y}, "LinalgInvExBackward0", {&a}, {},
                       autograd::WithJvp(
                           [](const Tensors& g, const Tensors& saved) -> Tensors {
                             const Tensor t = adjoint_of(saved[0]);
                             return {-matmul(t, matmul(g[0], t))};
                           },
                           [](const Tensors& t, const Tensors& saved) { return -matmul(saved[0], matmul(t[0], saved[0])); }),
                       1);
  if (check_errors) ops::check_info(f.info, "linalg.inv_ex", a.dim() > 2);
  return {y, f.info};
}

Tensor inv(const Tensor& a) {
  if (auto y = ops::wrapped("inverse", inv, a)) return *std::move(y);
  auto [y, info] = inv_ex(a);
  ops::check_info(info, "linalg.inv", a.dim() > 2);
  return y;
}

namespace {

// The gradient of A = P L U from those of L (below the diagonal) and U. A is m by n.
Tensor lu_gradient(const Tensor& gl, const Tensor& gu, const Tensor& p, const Tensor& l, const Tensor& u) {
  const int64_t m = l.size(-2), n = u.size(-1), k = l.size(-1);
  // Computes the gradient of dM = L1⁻¹ dA1 U1⁻¹, with the square parts of P⁻¹ A = [A1 A2] or [A1; A2].
  const Tensor l1 = l.narrow(-2, 0, k), u1 = u.narrow(-1, 0, k);
  const Tensor lh = adjoint_of(l1), uh = adjoint_of(u1);
  Tensor lower = matmul(lh, gl.narrow(-2, 0, k)), upper = matmul(gu.narrow(-1, 0, k), uh);
  if (n > k) lower = lower - matmul(gu.narrow(-1, k, n - k), adjoint_of(u.narrow(-1, k, n - k)));
  if (m > k) upper = upper - matmul(adjoint_of(l.narrow(-2, k, m - k)), gl.narrow(-2, k, m - k));
  const Tensor inner = tril(lower, -1) + triu(upper);
  Tensor ga = solve_triangular(uh, solve_triangular(lh, inner, true, true, true), false, false);
  if (n > k) ga = cat({ga, solve_triangular(lh, gu.narrow(-1, k, n - k), true, true, true)}, -1);
  if (m > k) ga = cat({ga, solve_triangular(uh, gl.narrow(-2, k, m - k), false, false)}, -2);
  return matmul(p, ga);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  if (auto y = ops::wrapped(ops::kNoCasts, lu_factor_ex, ops::matrices(a), pivot, check_errors)) return *std::move(y);
  ops::require_defined(a, "linalg.lu_factor", "A");
  if (a.dim() < 2) throw RuntimeError("torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {} instead", a.sizes().str());
  ops::require_lapack_type(a, "lu_cpu");
  if (!pivot) throw RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const ops::Lu f = ops::factored(a, "linalg.lu_factor");
  autograd::record_all(
      {&f.lu}, "LinalgLuFactorExBackward0", {&a}, {&f.pivots},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        const auto [p, l, u] = lu_unpack(saved[1], saved[0]);
        const int64_t k = l.size(-1);
        return {lu_gradient(tril(g[0].narrow(-1, 0, k), -1), triu(g[0].narrow(-2, 0, k)), p, l, u)};
      },
      1);
  if (check_errors) ops::check_info(f.info, "torch.linalg.lu_factor_ex", a.dim() > 2);
  return {f.lu, f.pivots, f.info};
}

std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot) {
  auto [factors, pivots, info] = lu_factor_ex(a, pivot);
  ops::check_info(info, "torch.linalg.lu_factor", a.dim() > 2);
  return {factors, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot) {
  ops::require_defined(a, "linalg.lu", "A");
  if (a.dim() < 2) throw RuntimeError("linalg.lu: Expected tensor with 2 or more dimensions. Got size: {} instead", a.sizes().str());
  const auto [factors, pivots, info] = lu_factor_ex(a, pivot);
  return lu_unpack(factors, pivots);
}

namespace {

void check_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left) {
  constexpr const char* kOp = "torch.linalg.lu_solve";
  ops::require_square(lu, kOp);
  ops::require_defined(pivots, kOp, "pivots"), ops::require_defined(b, kOp, "B");
  ops::require_floating(lu, kOp);
  if (lu.dtype() != b.dtype())
    throw RuntimeError("linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead",
                       ops::torch_name(lu.dtype()), ops::torch_name(b.dtype()));
  ops::require_lapack_type(lu, "lu_solve_cpu");
  if (pivots.dtype() != DType::I32) throw RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  if (pivots.dim() == 0 || pivots.size(-1) != lu.size(-1))
    throw RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
  if (!(pivots.sizes() == Dims(std::span<const int64_t>(lu.sizes()).first(lu.sizes().size() - 1))))
    throw RuntimeError("linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead",
                       pivots.sizes().str());
  check_right_side(lu, b, left, "linalg.lu_solve");
  ops::require_one_device(lu, b, "linalg.lu_solve", "LU", "B"), ops::require_one_device(lu, pivots, "linalg.lu_solve", "LU", "pivots");
  if (pivots.numel() == 0 || pivots.device().is_meta()) return;
  // LAPACK would access memory out of bounds with bad pivots.
  const int64_t n = lu.size(-2);
  for (const int64_t p : pivots.to_ints())
    if (p < 1 || p > n)
      throw RuntimeError("Pivots given to lu_solve must all be {}. Did you properly pass the result of lu_factor?",
                         p < 1 ? "greater or equal to 1" : "smaller or equal to LU.size(-2)");
}

}  // namespace

// The gradient of LU follows from dA = P dL U + P L dU.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  if (auto y = ops::wrapped("lu_solve", lu_solve, lu, pivots, b, left, adjoint)) return *std::move(y);
  check_lu_solve(lu, pivots, b, left);
  const Tensor x = ops::solved(lu, pivots, b, left, adjoint, "linalg.lu_solve");
  autograd::record_all(
      {&x}, "LinalgLuSolveBackward0", {&lu, &b}, {&lu, &pivots},
      [left, adjoint, shape = b.sizes()](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        const Tensor gb = lu_solve(saved[0], saved[1], g[0], left, !adjoint);
        const Tensor for_b = needed[1] ? sum_to(gb, shape) : Tensor();
        if (!needed[0]) return {Tensor(), for_b};
        const auto [p, l, u] = lu_unpack(saved[0], saved[1]);
        const Tensor gm = gradient_of_matrix(gb, saved[2], left, saved[0].sizes());
        const Tensor ga = matmul(flipped(p), adjoint ? ops::adjoint_of(gm) : gm);
        return {tril(matmul(ga, ops::adjoint_of(u)), -1) + triu(matmul(ops::adjoint_of(l), ga)), for_b};
      },
      1);
  return x;
}

}  // namespace linalg

namespace {

// The permutation matrix P of A = P L U, from the pivots' row exchanges.
Tensor permutation(const Tensor& pivots, int64_t m, DType type) {
  const int64_t k = pivots.size(-1),
                count = k ? pivots.numel() / k : product(Dims(std::span<const int64_t>(pivots.sizes()).first(pivots.sizes().size() - 1)));
  const std::vector<int64_t> exchanges = pivots.to_ints();
  std::vector<int64_t> places(static_cast<size_t>(count * m));
  for (int64_t b = 0; b < count; ++b) {
    int64_t* const row = places.data() + b * m;
    for (int64_t i = 0; i < m; ++i) row[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t with = exchanges[static_cast<size_t>(b * k + i)];
      if (with < 1 || with > m)
        throw RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?");
      std::swap(row[i], row[with - 1]);
    }
  }
  Dims sizes(std::span<const int64_t>(pivots.sizes()).first(pivots.sizes().size() - 1));
  sizes.push_back(1), sizes.push_back(m);
  const Tensor rows = tensor(places, Options(DType::I64, pivots.device())).reshape(sizes);
  return eq(arange(0, m, 1, Options(DType::I64, pivots.device())).unsqueeze(-1), rows).to(type);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpack_data, bool unpack_pivots) {
  ops::require_defined(lu, "torch.lu_unpack", "LU_data"), ops::require_defined(pivots, "torch.lu_unpack", "LU_pivots");
  if (lu.dim() < 2)
    throw RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {} instead", lu.sizes().str());
  const auto entries = [&] {
    const batching::Batch b{&lu, &pivots};
    return b.entry(lu_unpack(b.whole(lu), b.whole(pivots), unpack_data, unpack_pivots));
  };
  if (auto y = ops::by_rules(lu, pivots, ops::BatchRule{entries})) return *std::move(y);
  const Dims batch = batch_of(lu);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  if (unpack_pivots && pivots.dtype() != DType::I32)
    throw RuntimeError(
        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be "
        "used "
        "with the output produced by torch.linalg.lu_factor");
  Dims wanted = batch;
  wanted.push_back(k);
  if (!(pivots.sizes() == wanted))
    throw ValueError("Expected LU_pivots to have shape {} but got {} instead.", wanted.str(), pivots.sizes().str());
  const Tensor none = empty({0}, Options(lu.dtype(), lu.device()));
  Tensor p = none, l = none, u = none;
  if (unpack_pivots) {
    Dims square = batch;
    square.push_back(m), square.push_back(m);
    p = lu.device().is_meta() ? empty(square, Options(lu.dtype(), lu.device())) : permutation(pivots, m, lu.dtype());
  }
  if (unpack_data) {
    l = tril(lu.narrow(-1, 0, k), -1) + eye(m, k, Options(lu.dtype(), lu.device()));
    u = triu(lu.narrow(-2, 0, k));
  }
  return {p, l, u};
}

}  // namespace naru
