// Functions based on singular values: lstsq, pinv, matrix_rank.
#include <algorithm>
#include <array>
#include <limits>

#include "autograd/graph/node.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/tensor/limits.h"
#include "ops/tensor/type_names.h"

namespace naru::linalg {
namespace {

using ops::adjoint_of;
using ops::batch_of;
using ops::epsilon_of;
using ops::LapackCall;
using Routine = ir::Lapack::Routine;
using Tensors = std::vector<Tensor>;
using OptOperand = std::optional<Operand>;

Tensor eye_like(const Tensor& t, int64_t n) { return eye(n, n, Options(t.dtype(), t.device())); }

// The gradient of P = pinv(A), by products of A and P.
Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  const Tensor pt = adjoint_of(p), gt = adjoint_of(g);
  const Tensor outside = eye_like(a, a.size(-2)) - matmul(a, p), inside = eye_like(a, a.size(-1)) - matmul(p, a);
  return matmul(outside, matmul(gt, matmul(p, pt))) + matmul(matmul(pt, p), matmul(gt, inside)) - matmul(pt, matmul(g, pt));
}

bool is_none_or_zero(const OptOperand& o) { return !o || (!o->is_tensor() && o->scalar().to_double() == 0); }

void check_tolerance(const OptOperand& o, const char* op, const char* name, const Tensor& a) {
  if (!o || !o->is_tensor()) return;
  if (is_complex(o->tensor().dtype()))
    throw RuntimeError("{}: {} tensor of complex type is not supported. Got {}", op, name, ops::torch_name(o->tensor().dtype()));
  ops::require_one_device(a, o->tensor().dim() == 0 && o->tensor().device().is_cpu() ? a : o->tensor(), op, "A", name);
}

// max(atol, rtol * the greatest value), shape (*, 1), for nonnegative values (*, k).
Tensor tolerance(const Tensor& values, const Tensor& a, const OptOperand& atol, const OptOperand& rtol, const char* op) {
  check_tolerance(atol, op, "atol", a), check_tolerance(rtol, op, "rtol", a);
  const Tensor greatest = amax(values, Dims{-1});
  const auto product = [&](const Operand& share) { return mul(greatest, share).to(values.dtype()); };
  const bool standard = !rtol && (is_none_or_zero(atol) || !atol);
  Tensor least = standard ? product(epsilon_of(a.dtype()) * static_cast<double>(std::max(a.size(-2), a.size(-1))))
                 : rtol   ? product(*rtol)
                          : zeros_like(greatest);
  if (atol) least = maximum(least, *atol).to(values.dtype());
  // Tensor tolerances give one tolerance per matrix of the batch.
  return least.unsqueeze(-1);
}

}  // namespace

Tensor pinv(const Tensor& a, const OptOperand& atol, const OptOperand& rtol, bool hermitian) {
  const auto of_all = [](const OptOperand& o) { return !o || !o->is_tensor() || !is_batched(o->tensor()); };
  const ops::Entries matrices{a, of_all(atol) && of_all(rtol) ? 2 : INT64_MAX};  // one by one if entries have tolerances of their own
  if (auto y = ops::wrapped("pinverse", pinv, matrices, atol, rtol, hermitian)) return *std::move(y);
  constexpr const char* kOp = "torch.linalg.pinv";
  ops::require_defined(a, kOp, "A");
  if (a.dim() < 2 || !ops::is_lapack_type(a.dtype()))
    throw RuntimeError("linalg.pinv({}{{{}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
                       ops::torch_name(a.dtype()), a.sizes().str());
  if (hermitian) ops::require_square(a, "linalg.pinv");
  Tensor p;
  if (a.numel() == 0) {
    p = zeros(ops::with_matrix(batch_of(a), a.size(-1), a.size(-2)), Options(a.dtype(), a.device()));
  } else {
    const NoGrad off;
    Tensor u, s, vt;
    if (hermitian) {
      std::tie(s, u) = eigh(a);
      vt = adjoint_of(u);
    } else {
      std::tie(u, s, vt) = linalg::svd(a, false);
    }
    const Tensor size = hermitian ? abs(s) : s;
    const Tensor inverse = where(gt(size, tolerance(size, a, atol, rtol, kOp)), reciprocal(s), 0.0);
    p = matmul(adjoint_of(vt) * inverse.unsqueeze(-2), adjoint_of(u));
  }
  return autograd::record(
      p, "LinalgPinvBackward0", {&a}, {&a},
      [](const Tensors& g, const Tensors& saved) -> Tensors {
        // The gradient for a general matrix, as in PyTorch, even if only one triangle was read.
        return {pinv_gradient(g[0], saved[1], saved[0])};
      },
      true);
}

Tensor matrix_rank(const Tensor& a, const OptOperand& atol, const OptOperand& rtol, bool hermitian) {
  if (auto y = ops::wrapped("matrix_rank", matrix_rank, a, atol, rtol, hermitian)) return *std::move(y);
  constexpr const char* kOp = "torch.linalg.matrix_rank";
  ops::require_matrices(a, kOp, "input");
  if (!ops::is_lapack_type(a.dtype())) throw RuntimeError("This function doesn't handle types other than float and double");
  const NoGrad off;
  if (a.numel() == 0) return zeros(batch_of(a), Options(DType::I64, a.device()));
  const Tensor s = hermitian ? abs(eigvalsh(a)) : svdvals(a);
  return sum(gt(s, tolerance(s, a, atol, rtol, kOp)), Dims{-1});
}

namespace {

enum class Driver { Gels, Gelsy, Gelsd, Gelss };
struct DriverRow {
  std::string_view name;
  Routine routine;
  bool rank, values;
};
constexpr DriverRow kDrivers[] = {{"gels", Routine::Gels, false, false},
                                  {"gelsy", Routine::Gelsy, true, false},
                                  {"gelsd", Routine::Gelsd, true, true},
                                  {"gelss", Routine::Gelss, true, true}};

const DriverRow& driver_of(std::optional<std::string_view> name) {
  for (const DriverRow& d : kDrivers)
    if (d.name == name.value_or("gelsy")) return d;
  throw RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
}

// Returns whether B holds vectors.
bool check_lstsq(const Tensor& a, const Tensor& b) {
  constexpr const char* kOp = "torch.linalg.lstsq";
  ops::require_defined(a, kOp, "input"), ops::require_defined(b, kOp, "other");
  if (a.dim() < 2) throw RuntimeError("{}: input must have at least 2 dimensions.", kOp);
  if (b.dim() < 1) throw RuntimeError("{}: other must have at least 1 dimension.", kOp);
  if (a.dtype() != b.dtype())
    throw RuntimeError("{}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}", kOp,
                       ops::torch_name(a.dtype()), ops::torch_name(b.dtype()));
  const int64_t difference = a.dim() - b.dim();
  if (difference < 0 || difference > 1)
    throw RuntimeError("{}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1", kOp);
  ops::require_floating(a, kOp);
  ops::require_lapack_type(a, "linalg_lstsq_cpu");
  ops::require_one_device(a, b, kOp, "input", "other");
  const bool vector = ops::is_vector_right_side(a, b);
  if (vector && a.size(-2) != b.size(-1)) throw RuntimeError("{}: input.size(-2) should match other.size(-1)", kOp);
  if (!vector && a.size(-2) != b.size(-2)) throw RuntimeError("{}: input.size(-2) should match other.size(-2)", kOp);
  return vector;
}

// The gradients of X = pinv(A) B and of the residuals |A X - B|², whose gradient does not depend on that of X.
Tensors lstsq_gradient(const Tensor& gx, const Tensor& gr, const Tensor& a, const Tensor& b, const Tensor& x, autograd::Needed needed) {
  Tensor ga, gb;
  const auto add = [](Tensor& to, const Tensor& t) { to = to.defined() ? to + t : t; };
  if (gx.defined()) {
    const Tensor p = pinv(a);
    if (needed[1]) add(gb, matmul(adjoint_of(p), gx));
    if (needed[0]) add(ga, pinv_gradient(matmul(gx, adjoint_of(b)), p, a));
  }
  if (gr.defined()) {
    const Tensor r = (matmul(a, x) - b) * 2.0 * gr.unsqueeze(-2);
    if (needed[1]) add(gb, -r);
    if (needed[0]) add(ga, matmul(r, adjoint_of(x)));
  }
  return {ga.defined() ? ops::sum_to(ga, a.sizes()) : ga, gb.defined() ? ops::sum_to(gb, b.sizes()) : gb};
}

struct Solution {
  Tensor x, residuals, rank, values;
};

Solution least_squares(const Tensor& a, const Tensor& b, double rcond, const DriverRow& driver) {
  constexpr const char* kOp = "torch.linalg.lstsq";
  const Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  const int64_t m = a.size(-2), n = a.size(-1), k = b.size(-1), rows = std::max(m, n);
  const Tensor work = ops::copied_matrices(a, batch, kOp);
  // LAPACK overwrites B with X, so the matrix has max(m, n) rows.
  const Tensor whole = ops::new_matrices(batch, rows, k, a, kOp);
  const Tensor top = whole.narrow(-2, 0, m);
  const ops::OpOperand elements{&b, {}, b.dtype()};
  ops::apply_into(ir::op::copy, {&elements, 1}, top);
  Solution f;
  LapackCall call(driver.routine, batch, a.dtype());
  call->rcond = rcond;
  call.writes(work).writes(whole);
  Tensor rank;
  if (driver.rank) {
    rank = ops::new_vectors(batch, 1, DType::I32, a, kOp);
    call.writes(rank, true);
  }
  if (driver.values) {
    f.values = ops::new_vectors(batch, std::min(m, n), real_of(a.dtype()), a, kOp);
    call.writes(f.values, true);
  }
  const bool any = m > 0 && n > 0 && k > 0;
  const Tensor info = call.run();
  if (any) ops::check_info(info, kOp, a.dim() > 2);
  f.x = any ? whole.narrow(-2, 0, n) : zeros(ops::with_matrix(batch, n, k), Options(a.dtype(), a.device()));
  if (driver.rank) f.rank = any ? rank.squeeze(-1).to(DType::I64) : zeros(batch, Options(DType::I64, a.device()));
  // Residuals only for full rank and more equations than unknowns: the rows after X in B's memory hold them.
  if (m > n && driver.name != "gelsy" && (!driver.rank || ops::holds(all(eq(f.rank, n)))))
    f.residuals = sum(square(abs(whole.narrow(-2, n, m - n))), Dims{-2});
  return f;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                                                 std::optional<std::string_view> driver) {
  if (auto y = ops::wrapped("lstsq", lstsq, a, b, rcond, driver)) return *std::move(y);
  const bool vector = check_lstsq(a, b);
  const DriverRow& row = driver_of(driver);
  const Tensor right = vector ? b.unsqueeze(-1) : b;
  const double least = rcond.value_or(epsilon_of(a.dtype()) * static_cast<double>(std::max(a.size(-2), a.size(-1))));
  const Options like(a.dtype(), a.device());
  Solution f;
  {
    const NoGrad off;
    f = least_squares(a, right, least, row);
    f.x = f.x.clone();
    if (!f.residuals.defined()) f.residuals = empty({0}, Options(real_of(a.dtype()), a.device()));
    if (!f.rank.defined()) f.rank = empty({0}, Options(DType::I64, a.device()));
    if (!f.values.defined()) f.values = empty({0}, Options(real_of(a.dtype()), a.device()));
  }
  const bool with_residuals = f.residuals.dim() > 1 || f.residuals.numel() > 0;
  autograd::record_all(
      {&f.x, &f.residuals}, "LinalgLstsqBackward0", {&a, &right}, {&a, &right},
      [with_residuals](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        return lstsq_gradient(g[0], with_residuals ? g[1] : Tensor(), saved[0], saved[1], saved[2], needed);
      },
      1);
  return {vector ? f.x.squeeze(-1) : f.x, f.residuals, f.rank, f.values};
}

}  // namespace naru::linalg
