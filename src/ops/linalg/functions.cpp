// Products and powers of matrices: matrix_exp, matrix_power, multi_dot, vander, cross, vecdot, tensorinv, tensorsolve.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/graph/node.h"
#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lapack.h"
#include "ops/tensor/type_names.h"

namespace naru::linalg {
namespace {

using ops::batch_of;
using Tensors = std::vector<Tensor>;

// The first 17 terms of the exponential series, evaluated in powers of A⁴.
Tensor exponential_series(const Tensor& a) {
  const Tensor one = ops::identity_like(a, a.size(-1)), a2 = matmul(a, a), a3 = matmul(a2, a), a4 = matmul(a2, a2);
  double factor[17];
  factor[0] = 1;
  for (int i = 1; i < 17; ++i) factor[i] = factor[i - 1] / i;
  Tensor sum = a4 * factor[16];
  for (int i = 12; i >= 0; i -= 4) {
    sum = sum + one * factor[i] + a * factor[i + 1] + a2 * factor[i + 2] + a3 * factor[i + 3];
    if (i) sum = matmul(sum, a4);
  }
  return sum;
}

// Scaling and squaring: exp(A) = exp(A / 2^s)^(2^s). s is chosen for each matrix so that the series is exact up to rounding.
Tensor exponential(const Tensor& a) {
  if (a.device().is_meta()) return exponential_series(a);
  const double bound = real_of(a.dtype()) == DType::F32 ? 2.5 : 0.75;  // fewer squarings keep more digits
  constexpr double kMost = 1100;
  const std::vector<double> sizes = amax(naru::norm(a, 1, Dims{-2}), Dims{-1}).to_doubles();
  std::vector<double> steps;
  for (const double size : sizes) {
    const double s = std::ceil(std::log2(size / bound));
    steps.push_back(s > 0 ? std::min(s, kMost) : 0);  // NaN and zero norms: 0
  }
  const double most = *std::max_element(steps.begin(), steps.end()), least = *std::min_element(steps.begin(), steps.end());
  if (most == 0) return exponential_series(a);
  const Tensor count = tensor(steps, Options(DType::F64, Device(DeviceType::Cpu))).reshape(ops::with_matrix(batch_of(a), 1, 1));
  Tensor x = exponential_series(a * exp2(-count).to(a.dtype()).to(a.device()));
  const Tensor squarings = count.to(DType::I32).to(a.device());
  for (int i = 0; i < static_cast<int>(most); ++i) {
    const Tensor square = matmul(x, x);
    x = i < static_cast<int>(least) ? square : where(gt(squarings, i), square, x);
  }
  return x;
}

}  // namespace

Tensor matrix_exp(const Tensor& a) {
  if (auto y = ops::wrapped(ops::kNoCasts, matrix_exp, ops::matrices(a))) return *std::move(y);
  constexpr const char* kOp = "linalg.matrix_exp";
  ops::require_square(a, kOp);
  ops::require_floating(a, kOp);
  if (a.numel() == 0) return a.clone();
  const int64_t n = a.size(-1);
  if (n == 1) return exp(a);
  if (a.dtype() == DType::F16 || a.dtype() == DType::BF16) return matrix_exp(a.to(DType::F32)).to(a.dtype());
  Tensor y;
  {
    const NoGrad off;
    y = exponential(a);
  }
  return autograd::record(y, "LinalgMatrixExpBackward0", {&a}, {&a}, [n](const Tensors& g, const Tensors& saved) -> Tensors {
    // The derivative in the direction G is a block of the exponential of a matrix of twice the size.
    const Tensor t = ops::adjoint_of(saved[0]);
    const Tensor both = cat({cat({t, g[0]}, -1), cat({zeros_like(t), t}, -1)}, -2);
    return {matrix_exp(both).narrow(-2, 0, n).narrow(-1, n, n)};
  });
}

Tensor matrix_power(const Tensor& a, int64_t n) {
  ops::require_square(a, "linalg.matrix_power");
  if (n == 0) return autograd::record_constant(ops::identity_like(a, a.size(-1)).clone(), "MatrixPowerBackward0", {&a});
  if (n < 0) return n == -1 ? inv(a) : matrix_power(inv(a), -(n + 1)).matmul(inv(a));
  if (n == 1) return a.clone();
  Tensor power = a, result;
  for (uint64_t rest = static_cast<uint64_t>(n);;) {
    if (rest & 1) result = result.defined() ? matmul(result, power) : power;
    if ((rest >>= 1) == 0) return result;
    power = matmul(power, power);
  }
}

namespace {

void check_chain(const Tensors& tensors) {
  if (tensors.size() < 2) throw RuntimeError("multi_dot(): expected at least 2 tensors but got {}", tensors.size());
  const size_t n = tensors.size();
  for (size_t i = 0; i < n; ++i) {
    const Tensor& t = tensors[i];
    ops::require_defined(t, "multi_dot", "tensors");
    if (i == 0 || i == n - 1) {
      if (t.dim() != 1 && t.dim() != 2)
        throw RuntimeError("multi_dot(): the {} tensor must be 1D or 2D but got {}D", i == 0 ? "first" : "last", t.dim());
    } else if (t.dim() != 2) {
      throw RuntimeError("multi_dot(): tensor {} must be 2D but got {}D", i, t.dim());
    }
    if (t.dtype() != tensors[0].dtype())
      throw RuntimeError("multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor {} {}",
                         ops::c_name(tensors[0].dtype()), i, ops::c_name(t.dtype()));
    if (t.device() != tensors[0].device())
      throw RuntimeError("multi_dot(): all tensors must be on the same device but tensor 0 is on {} and tensor {} on {}",
                         tensors[0].device().str(), i, t.device().str());
  }
}

// Matrix chain order with the fewest multiplications for factors of sizes d[i] x d[i + 1]: split[i][j] is the last factor of the left part of i ...
// j.
std::vector<std::vector<size_t>> best_order(const std::vector<int64_t>& d) {
  const size_t n = d.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double c =
            cost[i][k] + cost[k + 1][j] + static_cast<double>(d[i]) * static_cast<double>(d[k + 1]) * static_cast<double>(d[j + 1]);
        if (c < cost[i][j]) cost[i][j] = c, split[i][j] = k;
      }
    }
  return split;
}

Tensor chain(const Tensors& factors, const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return factors[i];
  return mm(chain(factors, split, i, split[i][j]), chain(factors, split, split[i][j] + 1, j));
}

}  // namespace

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  if (auto y = ops::wrapped("multi_dot", multi_dot, tensors)) return *std::move(y);
  check_chain(tensors);
  Tensors factors = tensors;
  const bool first = factors.front().dim() == 1, last = factors.back().dim() == 1;
  if (first) factors.front() = factors.front().unsqueeze(0);
  if (last) factors.back() = factors.back().unsqueeze(-1);
  std::vector<int64_t> sizes{factors[0].size(0)};
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i && factors[i].size(0) != sizes.back())
      throw RuntimeError("multi_dot(): tensors {} and {} with shapes {} and {} cannot be multiplied", i - 1, i,
                         tensors[i - 1].sizes().str(), tensors[i].sizes().str());
    sizes.push_back(factors[i].size(1));
  }
  Tensor y = chain(factors, best_order(sizes), 0, factors.size() - 1);
  if (last) y = y.squeeze(-1);
  return first ? y.squeeze(0) : y;
}

Tensor vander(const Tensor& x, std::optional<int64_t> n) {
  ops::require_defined(x, "linalg.vander", "x");
  if (x.dtype() == DType::Bool || x.dtype() == DType::F16 || x.dtype() == DType::BF16)
    throw NotImplementedError("linalg.vander supports floating point, complex, and integer tensors, but got {}",
                              ops::torch_name(x.dtype()));
  const int64_t count = n.value_or(x.dim() ? x.size(-1) : 1);
  if (count <= 1) throw RuntimeError("N must be greater than 1.");
  Dims shape = x.dim() ? x.sizes() : Dims{1};
  shape.push_back(count - 1);
  const Tensor powers = cumprod(x.unsqueeze(-1).expand(shape), -1);
  shape.back() = 1;
  return cat({ones(shape, Options(powers.dtype(), x.device())), powers}, -1);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  ops::require_defined(a, "linalg.cross", "input"), ops::require_defined(b, "linalg.cross", "other");
  if (a.dim() != b.dim()) throw RuntimeError("linalg.cross: inputs must have the same number of dimensions.");
  if (a.dim() == 0 || a.size(dim) != 3 || b.size(dim) != 3)
    throw RuntimeError("linalg.cross: inputs dimension {} must have length 3. Got {} and {}", dim, a.dim() ? a.size(dim) : 1,
                       b.dim() ? b.size(dim) : 1);
  if (a.dtype() != b.dtype())
    throw RuntimeError("expected scalar type {} but found {}", ops::torch_name(a.dtype()), ops::torch_name(b.dtype()));
  return naru::cross(a, b, dim);
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  if (auto made = ops::wrapped("vecdot", vecdot, x, y, dim)) return *std::move(made);
  ops::require_defined(x, "linalg.vecdot", "x"), ops::require_defined(y, "linalg.vecdot", "y");
  if (x.dtype() != y.dtype())
    throw RuntimeError("linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
                       ops::torch_name(x.dtype()), ops::torch_name(y.dtype()));
  return sum(mul(ops::conjugate(x), y), Dims{dim}, false, x.dtype() == DType::Bool ? std::optional<DType>() : x.dtype());
}

namespace {

int64_t product_of_sizes(const Tensor& t, int64_t from, int64_t to) {
  return product(std::span<const int64_t>(t.sizes()).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
}

}  // namespace

Tensor tensorinv(const Tensor& a, int64_t ind) {
  if (auto y = ops::wrapped("tensorinv", tensorinv, a, ind)) return *std::move(y);
  ops::require_defined(a, "linalg.tensorinv", "A");
  if (ind <= 0) throw RuntimeError("Expected a strictly positive integer for 'ind', but got {}", ind);
  const int64_t at = std::min(ind, a.dim()), behind = product_of_sizes(a, at, a.dim()), front = product_of_sizes(a, 0, at);
  if (behind != front)
    throw RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {} != {}",
                       behind, front);
  auto [inverse, info] = inv_ex(a.reshape({front, behind}));
  ops::check_info(info, "inv", false);
  Dims shape;
  for (int64_t d = 0; d < a.dim(); ++d) shape.push_back(a.sizes()[static_cast<size_t>((d + at) % a.dim())]);
  return inverse.reshape(shape);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, const OptionalDims& dims) {
  if (auto y = ops::wrapped("tensorsolve", tensorsolve, a, b, dims)) return *std::move(y);
  ops::require_defined(a, "linalg.tensorsolve", "A"), ops::require_defined(b, "linalg.tensorsolve", "B");
  Tensor t = a;
  if (dims) {
    Dims to;
    for (size_t i = 0; i < dims->size(); ++i) to.push_back(a.dim() - static_cast<int64_t>(dims->size() - i));
    t = movedim(a, *dims, to);
  }
  const int64_t at = std::min(b.dim(), t.dim()), behind = product_of_sizes(t, at, t.dim()), front = product_of_sizes(t, 0, at);
  if (behind != front)
    throw RuntimeError(
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {} != {}", behind,
        front);
  const Dims shape(std::span<const int64_t>(t.sizes()).subspan(static_cast<size_t>(at)));
  return solve(t.reshape({front, behind}), b.reshape({b.numel()})).reshape(shape);
}

}  // namespace naru::linalg

namespace naru {

Tensor vander(const Tensor& t, std::optional<int64_t> n, bool increasing) {
  ops::require_defined(t, "vander", "input");
  if (t.dim() != 1) throw RuntimeError("x must be a one-dimensional tensor. (vander: got shape {})", t.sizes().str());
  const int64_t columns = n.value_or(t.numel());
  if (columns < 0) throw RuntimeError("N must be non-negative. (vander: got {})", columns);
  const DType type = t.dtype() == DType::Bool || is_integral(t.dtype()) ? DType::I64 : t.dtype();
  Tensor powers = arange(0, columns, 1, Options(DType::I64, t.device()));
  if (!increasing) powers = flip(powers, {0});
  return pow(t.to(type).unsqueeze(1), powers.to(type));
}

}  // namespace naru
