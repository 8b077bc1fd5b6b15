// Vectors and matrices: distances, products of all kinds, differences, integrals.
#include <algorithm>

#include "core/sizes.h"
#include "naru/compositions.h"
#include "naru/ops.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/constant.h"
#include "ops/elementwise.h"
#include "ops/half.h"
#include "ops/history.h"
#include "ops/host_loop.h"
#include "ops/numbers.h"
#include "ops/rules.h"
#include "ops/type_names.h"

namespace naru {
namespace {

using autocast::Casts;

Tensor scaled_sum(const Tensor& c, const Tensor& product, Scalar beta, Scalar alpha) {
  if (!is_inexact(c.dtype())) beta = ops::converted(beta, c.dtype()), alpha = ops::converted(alpha, c.dtype());
  const Tensor x = alpha.equals(1) ? product : mul(product, Operand(alpha));
  // A factor of 0 leaves out even what is not finite.
  if (beta.equals(0)) return add(autograd::record_constant(zeros_like(c.detach()), "MulBackward0", {&c}), x);
  return beta.equals(1) ? add(c, x) : add(mul(c, Operand(beta)), x);
}

Tensor differences(const Tensor& t, int64_t dim) {
  const int64_t n = t.size(dim);
  if (n == 0) return t;
  const Tensor behind = t.narrow(dim, 1, n - 1), before = t.narrow(dim, 0, n - 1);
  return t.dtype() == DType::Bool ? logical_xor(behind, before) : sub(behind, before);
}

}  // namespace

Tensor dist(const Tensor& a, const Tensor& b, double p) {
  if (const Casts c("dist", {&a, &b}); c) return dist(c[0], c[1], p);
  return norm(sub(a, b), p);
}

namespace {

// |x|² - 2 x y + |y|²: less exact than differences where both are near each other, and much less work.
Tensor euclidean_by_products(const Tensor& a, const Tensor& b) {
  Tensor y;
  {
    const NoGrad off;
    const Tensor x = a.detach(), z = b.detach(), product = matmul(x, z.transpose(-1, -2));
    const Tensor of_a = sum(square(x), Dims{-1}, true), of_b = sum(square(z), Dims{-1}).unsqueeze(-2);
    y = sqrt(clamp_min(of_a - product * 2.0 + of_b, 0.0));
  }
  return autograd::record(
      std::move(y), "CdistBackward0", {&a, &b}, {&a, &b},
      [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
        const Tensor &x = saved[0], &z = saved[1], &y = saved[2];
        const Tensor share = where(y == 0.0, 0.0, g[0] / y);
        const Tensor gx = x * sum(share, Dims{-1}, true) - matmul(share, z);
        const Tensor gz = z * sum(share, Dims{-2}).unsqueeze(-1) - matmul(share.transpose(-1, -2), x);
        return {ops::sum_to(gx, x.sizes()), ops::sum_to(gz, z.sizes())};
      },
      true);
}

bool by_products(const Tensor& a, const Tensor& b, double p, std::string_view mode) {
  constexpr int64_t kFew = 25;  // rows: PyTorch's bound
  if (mode == "use_mm_for_euclid_dist") return p == 2;
  if (mode == "donot_use_mm_for_euclid_dist") return false;
  if (mode == "use_mm_for_euclid_dist_if_necessary") return p == 2 && (a.size(-2) > kFew || b.size(-2) > kFew);
  throw ValueError("{} is not a valid value for compute_mode", mode);
}

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p, std::string_view compute_mode) {
  if (const Casts c("cdist", {&a, &b}); c) return cdist(c[0], c[1], p, compute_mode);
  if (a.dim() < 2 || b.dim() < 2)
    throw RuntimeError("cdist only supports at least 2D tensors, got {} and {}", a.sizes().str(), b.sizes().str());
  if (a.size(-1) != b.size(-1)) throw RuntimeError("X1 and X2 must have the same number of columns. X1: {} X2: {}", a.size(-1), b.size(-1));
  for (const auto& [t, role] : {std::pair(&a, "X1"), std::pair(&b, "X2")})
    if (!is_floating(t->dtype()))
      throw RuntimeError("cdist only supports floating-point dtypes, {} got: {}", role, ops::torch_name(t->dtype()));
  if (a.element_size() == 2)
    throw NotImplementedError("\"cdist\" not implemented for '{}' (convert to float32 first)", ops::torch_name(a.dtype()));
  if (by_products(a, b, p, compute_mode) && a.dtype() == b.dtype() && a.size(-1) > 0) return euclidean_by_products(a, b);
  if (p == 2 && a.dim() == 2 && b.dim() == 2 && a.dtype() == b.dtype() && a.size(1) <= ir::kContiguousChunk &&
      ops::takes_host_loop({&a, &b})) {
    const Tensor x = a.contiguous(), y = b.contiguous(), out = ops::make_result({x.size(0), y.size(0)}, x.dtype(), x.device(), "cdist");
    ops::run_host_loop(ir::HostLoop::Kind::Distances, {&x, &y}, {&out});
    return out;
  }
  return norm(sub(a.unsqueeze(-2), b.unsqueeze(-3)), p, Dims{-1});
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> given) {
  if (const Casts c("cross", {&a, &b}); c) return cross(c[0], c[1], given);
  const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
  // (The parts of a single vector are numbers, which may come from another device.)
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

Tensor diff(const Tensor& t, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (t.dim() == 0) throw RuntimeError("diff expects input to be at least one-dimensional; unsqueeze(0) makes it so");
  if (n < 0) throw RuntimeError("order must be non-negative but got {}", n);
  if (n == 0) return t.clone();
  std::vector<Tensor> parts;
  for (const Tensor* part : {&prepend, &t, &append}) {
    if (!part->defined()) continue;
    if (part->dim() != t.dim()) throw RuntimeError("diff expects prepend or append to be the same dimension as input");
    for (int64_t d = 0; d < t.dim(); ++d)
      if (part->size(d) != t.size(d) && d != wrap_dim(dim, t.dim()))
        throw RuntimeError(
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
            "input.size({0}) = {1}, but got tensor.size({0}) = {2}",
            d, t.size(d), part->size(d));
    parts.push_back(*part);
  }
  Tensor out = parts.size() > 1 ? cat(parts, dim) : t;
  for (int64_t i = 0; i < n && out.size(dim) > 0; ++i) out = differences(out, dim);
  return out;
}

namespace {
// x seen beside y: a vector along the dimension, anything else as it broadcasts; its steps.
Tensor steps_beside(const Tensor& x, const Tensor& y, int64_t dim) {
  Dims shape(static_cast<size_t>(y.dim()), 1);
  if (x.dim() == 1) {
    if (x.size(0) != y.size(dim))
      throw RuntimeError("trapezoid: There must be one `x` value for each sample point (got {} and {})", x.size(0), y.size(dim));
    shape[static_cast<size_t>(dim)] = x.size(0);
  } else if (x.dim() < y.dim()) {
    std::copy(x.sizes().begin(), x.sizes().end(), shape.end() - x.dim());
  } else {
    shape = x.sizes();
  }
  return differences(x.reshape(shape), dim - y.dim());
}
}  // namespace

Tensor trapezoid(const Tensor& y, const Operand& dx, int64_t dim) {
  if (y.dtype() == DType::Bool) throw NotImplementedError("trapezoid: received a bool input for `y`, but bool is not supported");
  const int64_t n = y.size(dim);
  if (n == 0) return sum(y, Dims{dim});
  const Operand both[] = {y, dx};
  if (const DType type = ops::result_type(both); ops::is_half(type))  // rounded once
    return trapezoid(y.to(DType::F32), dx.is_tensor() ? Operand(dx.tensor().to(DType::F32)) : dx, dim).to(type);
  return div(sum(mul(add(y.narrow(dim, 1, n - 1), y.narrow(dim, 0, n - 1)), dx), Dims{dim}), Operand(2.0));
}
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t n = y.size(dim);  // throws where there is no such dimension
  const Operand both[] = {y, x};
  if (const DType type = ops::result_type(both); n > 0 && ops::is_half(type))
    return trapezoid(y.to(DType::F32), x.to(DType::F32), dim).to(type);
  return n == 0 ? sum(y, Dims{dim}) : trapezoid(y, Operand(steps_beside(x, y, wrap_dim(dim, y.dim()))), dim);
}

Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta, Scalar alpha) {
  if (const Casts k("addmv", {&c, &matrix, &vector}); k) return addmv(k[0], k[1], k[2], beta, alpha);
  if (c.dtype() != matrix.dtype() || c.dtype() != vector.dtype())
    throw RuntimeError("addmv input tensors must have the same dtype, but got {}, {}, and {}", ops::torch_name(c.dtype()),
                       ops::torch_name(matrix.dtype()), ops::torch_name(vector.dtype()));
  return scaled_sum(c, mv(matrix, vector), beta, alpha);
}

Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (const Casts k("baddbmm", {&c, &a, &b}); k) return baddbmm(k[0], k[1], k[2], beta, alpha);
  if (c.dtype() != a.dtype() || c.dtype() != b.dtype())
    throw RuntimeError("Input dtypes must be the same, got: input {}, batch1: {}, batch2: {} (baddbmm)", ops::c_name(c.dtype()),
                       ops::c_name(a.dtype()), ops::c_name(b.dtype()));
  return scaled_sum(c, bmm(a, b), beta, alpha);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  if (const Casts c("cosine_similarity", {&a, &b}); c) return cosine_similarity(c[0], c[1], dim, eps);
  const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
  const Operand operands[] = {a, b};
  if (const DType common = ops::result_type(operands); !is_floating(common))
    throw RuntimeError("expected common dtype to be floating point, yet common dtype is {} (cosine_similarity)", ops::torch_name(common));
  if (const DType common = ops::result_type(operands); ops::is_half(common))
    return cosine_similarity(a.to(DType::F32), b.to(DType::F32), dim, eps).to(common);
  const auto unit = [&](const Tensor& t) {
    const Tensor x = (is_inexact(t.dtype()) ? t : t.to(default_dtype())).expand(shape);
    return x / clamp_min(norm(x, 2, Dims{dim}, true), Operand(eps));
  };
  return sum(unit(a) * unit(b), Dims{dim});
}

}  // namespace naru
