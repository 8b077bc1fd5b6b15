// Products of vectors and matrices: inner, kron, cross, and fused multiply-adds of matrices (addmv, addr, addbmm, baddbmm).
#include <algorithm>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/rules.h"
#include "ops/linalg/matmul.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru {

using ops::scaled_sum;

Tensor ops::scaled_sum(const Tensor& c, const Tensor& product, Scalar beta, Scalar alpha) {
  if (!is_inexact(c.dtype())) beta = ops::converted(beta, c.dtype()), alpha = ops::converted(alpha, c.dtype());
  const Tensor x = alpha.equals(1) ? product : mul(product, Operand(alpha));
  if (beta.equals(0)) return add(autograd::record_constant(zeros_like(c.detach()), "MulBackward0", {&c}), x);
  return beta.equals(1) ? add(c, x) : add(mul(c, Operand(beta)), x);
}

namespace {
void require_vector(const Tensor& t, const char* op) {
  ops::require_defined(t, op, "input");
  if (t.dim() != 1) throw RuntimeError("{}: Expect a 1D vector, but got shape {}", op, t.sizes().str());
}

}  // namespace

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> given) {
  if (auto y = ops::wrapped("cross", cross, a, b, given)) return *std::move(y);
  const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
  // Check here: the components of a single vector are 0-d tensors, which may be on another device.
  const Tensor* const both[] = {&a, &b};
  static constexpr const char* kRoles[] = {"input", "other"};
  ops::common_device(both, kRoles, "linalg_cross");
  const Tensor x = a.expand(shape), y = b.expand(shape);
  int64_t dim = -1;
  if (given) {
    dim = wrap_dim(*given, x.dim());
  } else {
    for (int64_t d = 0; d < x.dim() && dim < 0; ++d)
      if (x.size(d) == 3) dim = d;
    if (dim < 0) throw RuntimeError("no dimension of size 3 in input of shape {}", shape.str());
  }
  if (x.size(dim) != 3)
    throw RuntimeError("linalg.cross: inputs dimension {} must have length 3. Got {} and {}", dim, a.size(dim), b.size(dim));
  const auto part = [&](const Tensor& t, int64_t i) { return t.select(dim, i % 3); };
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i) parts.push_back(sub(mul(part(x, i + 1), part(y, i + 2)), mul(part(x, i + 2), part(y, i + 1))));
  return stack(parts, dim);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  ops::require_defined(a, "inner", "input"), ops::require_defined(b, "inner", "other");
  if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
  if (a.size(-1) != b.size(-1))
    throw RuntimeError("inner() the last dimension must match on both input tensors but got shapes {} and {}", a.sizes().str(),
                       b.sizes().str());
  if (b.dim() > 2) return tensordot(a, b, {-1}, {-1});
  return matmul(a, b.dim() > 1 ? b.transpose(-1, -2) : b);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int64_t rank = std::max(a.dim(), b.dim());
  const auto padded = [&](const Tensor& t) {
    Dims shape(static_cast<size_t>(rank - t.dim()), 1);
    for (int64_t s : t.sizes()) shape.push_back(s);
    return shape;
  };
  const Dims x = padded(a), y = padded(b);
  Dims left, right, out;
  for (size_t d = 0; d < x.size(); ++d) {
    left.push_back(x[d]), left.push_back(1);
    right.push_back(1), right.push_back(y[d]);
    out.push_back(times(x[d], y[d]));
  }
  return mul(a.reshape(left), b.reshape(right)).reshape(out);
}

Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta, Scalar alpha) {
  if (auto y = ops::wrapped("addmv", addmv, c, matrix, vector, beta, alpha)) return *std::move(y);
  if (c.dtype() != matrix.dtype() || c.dtype() != vector.dtype())
    throw RuntimeError("addmv input tensors must have the same dtype, but got {}, {}, and {}", ops::torch_name(c.dtype()),
                       ops::torch_name(matrix.dtype()), ops::torch_name(vector.dtype()));
  return scaled_sum(c, mv(matrix, vector), beta, alpha);
}

Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (auto y = ops::wrapped("baddbmm", baddbmm, c, a, b, beta, alpha)) return *std::move(y);
  if (c.dtype() != a.dtype() || c.dtype() != b.dtype())
    throw RuntimeError("Input dtypes must be the same, got: input {}, batch1: {}, batch2: {} (baddbmm)", ops::c_name(c.dtype()),
                       ops::c_name(a.dtype()), ops::c_name(b.dtype()));
  return scaled_sum(c, bmm(a, b), beta, alpha);
}

Tensor addbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (auto y = ops::wrapped("addbmm", addbmm, c, a, b, beta, alpha)) return *std::move(y);
  for (const auto& [t, role] : {std::pair(&a, "batch1"), std::pair(&b, "batch2")}) {
    ops::require_defined(*t, "addbmm", role);
    if (t->dim() != 3) throw RuntimeError("{} must be a 3D tensor", role);
  }
  if (a.size(0) != b.size(0)) throw RuntimeError("batch1 and batch2 must have same number of batches, got {} and {}", a.size(0), b.size(0));
  if (a.size(2) != b.size(1))
    throw RuntimeError("Incompatible matrix sizes for bmm ({}x{} and {}x{})", a.size(1), a.size(2), b.size(1), b.size(2));
  // Merge the batch dimension into the summed dimension: one product.
  const Tensor left = a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)}),
               right = b.reshape({b.size(0) * b.size(1), b.size(2)});
  return addmm(c.expand({a.size(1), b.size(2)}), left, right, beta, alpha);
}

Tensor addr(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (auto y = ops::wrapped("addr", addr, c, a, b, beta, alpha)) return *std::move(y);
  require_vector(a, "addr");
  require_vector(b, "addr");
  const Operand operands[] = {c, a, b};
  const DType type = ops::result_type(operands);
  ops::require_factor(type, beta, "beta"), ops::require_factor(type, alpha, "alpha");
  const bool none = !beta.to_bool();
  if (type == DType::Bool) {
    const Tensor both = logical_and(logical_and(a.unsqueeze(1), b.unsqueeze(0)), Operand(alpha.to_bool()));
    return none ? both : logical_or(logical_and(c, Operand(true)), both);
  }
  const Tensor product = outer(a.to(type), b.to(type)) * alpha;
  return none ? product : c.to(type) * beta + product;
}

}  // namespace naru
