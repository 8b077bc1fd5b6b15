// Norms of vectors and matrices, and condition numbers.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/linalg/lapack.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/type_names.h"

namespace naru::linalg {
namespace {

using OptType = std::optional<DType>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// dtype: the type to convert the elements to, which must be able to hold them.
void check_dtype(const Tensor& t, OptType dtype, const char* op) {
  if (!dtype) return;
  if (!is_inexact(*dtype)) throw RuntimeError("{}: dtype should be floating point or complex, but got {}", op, ops::torch_name(*dtype));
  if (is_complex(t.dtype()) != is_complex(*dtype))
    throw RuntimeError("{}: dtype should be {} for {} inputs, but got {}", op, is_complex(t.dtype()) ? "complex" : "real",
                       is_complex(t.dtype()) ? "complex" : "real", ops::torch_name(*dtype));
  if (promote(t.dtype(), *dtype) != *dtype)
    throw RuntimeError("{}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})", op,
                       ops::torch_name(t.dtype()), ops::torch_name(*dtype));
}

struct Pair {
  int64_t rows, cols;  // dimension numbers, nonnegative
};

Pair check_matrix_norm(const Tensor& t, const Dims& dims) {
  constexpr const char* kOp = "linalg.matrix_norm";
  ops::require_matrices(t, kOp);
  ops::require_floating(t, kOp);
  if (dims.size() != 2) {
    std::string text;
    for (const int64_t d : dims) text += (text.empty() ? "" : ", ") + std::to_string(d);
    throw RuntimeError("{}: dim must be a 2-tuple. Got {}", kOp, text);
  }
  const Pair p{wrap_dim(dims[0], t.dim()), wrap_dim(dims[1], t.dim())};
  if (p.rows == p.cols) throw RuntimeError("{}: dims must be different. Got ({}, {})", kOp, p.rows, p.cols);
  return p;
}

// Restores the two reduced dimensions with size 1, if keepdim.
Tensor kept(const Tensor& t, const Pair& p, bool keepdim) {
  if (!keepdim) return t;
  return t.unsqueeze(std::min(p.rows, p.cols)).unsqueeze(std::max(p.rows, p.cols));
}

// Singular values of the matrices in dimensions p.rows and p.cols.
Tensor values_of(const Tensor& t, const Pair& p) {
  ops::require_floating(t, "linalg.matrix_norm", false);
  return svdvals(movedim(t, Dims{p.rows, p.cols}, Dims{-2, -1}));
}

// Maximum (minimum) along the last dimension; the maximum of an empty one is 0, as norms are.
Tensor extreme(const Tensor& v, bool greatest) {
  if (greatest) return v.size(-1) == 0 ? sum(v, Dims{-1}) : amax(v, Dims{-1});
  if (v.size(-1) == 0)
    throw IndexError("amin(): Expected reduction dim {} to have non-zero size. (linalg.matrix_norm: there is no least)", v.dim() - 1);
  return amin(v, Dims{-1});
}

std::string order_name(double p) { return std::isinf(p) ? (p > 0 ? "inf" : "-inf") : fmt::format("{}", p); }

// Of overloads: that of the arguments.
constexpr auto kMatrixNorm = [](const auto&... a) { return matrix_norm(a...); };
constexpr auto kCond = [](const auto&... a) { return cond(a...); };

}  // namespace

Tensor vector_norm(const Tensor& t, double ord, const OptionalDims& dims, bool keepdim, OptType dtype) {
  ops::require_defined(t, "linalg.vector_norm", "x");
  ops::require_floating(t, "linalg.vector_norm");
  check_dtype(t, dtype, "linalg.vector_norm");
  return naru::norm(t, ord, dims, keepdim, dtype);
}

Tensor matrix_norm(const Tensor& given, double ord, const Dims& dims, bool keepdim, OptType dtype) {
  if (auto y = ops::wrapped("matrix_norm", kMatrixNorm, given, ord, dims, keepdim, dtype)) return *std::move(y);
  const Pair p = check_matrix_norm(given, dims);
  const double size = std::abs(ord);
  if (size != 1 && size != 2 && !std::isinf(size)) throw RuntimeError("linalg.matrix_norm: Order {} not supported.", order_name(ord));
  check_dtype(given, dtype, "linalg.matrix_norm");
  const Tensor t = dtype ? given.to(*dtype) : given;
  if (size == 2) return kept(extreme(values_of(t, p), ord > 0), p, keepdim);
  // Column sums, or row sums for an infinite order.
  const Pair by = std::isinf(size) ? Pair{p.cols, p.rows} : p;
  const Tensor sums = naru::norm(t, 1, Dims{by.rows}, true);
  return kept(extreme(sums.movedim(by.cols, -1).squeeze(by.rows < by.cols ? by.rows : by.rows - 1), ord > 0), p, keepdim);
}

Tensor matrix_norm(const Tensor& given, std::string_view ord, const Dims& dims, bool keepdim, OptType dtype) {
  if (auto y = ops::wrapped("matrix_norm", kMatrixNorm, given, ord, dims, keepdim, dtype)) return *std::move(y);
  const Pair p = check_matrix_norm(given, dims);
  if (ord != "fro" && ord != "nuc") throw RuntimeError("linalg.matrix_norm: Order {} not supported.", ord);
  check_dtype(given, dtype, "linalg.matrix_norm");
  if (ord == "fro") return naru::norm(given, 2, Dims{p.rows, p.cols}, keepdim, dtype);
  return kept(sum(values_of(dtype ? given.to(*dtype) : given, p), Dims{-1}), p, keepdim);
}

Tensor norm(const Tensor& t, std::optional<double> ord, const OptionalDims& dims, bool keepdim, OptType dtype) {
  ops::require_defined(t, "linalg.norm", "A");
  if (dims && dims->size() != 1 && dims->size() != 2)
    throw RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}", dims->str());
  if (!dims && ord && t.dim() != 1 && t.dim() != 2)
    throw RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.", t.dim());
  const bool matrix = ord && (dims ? dims->size() == 2 : t.dim() == 2);
  if (matrix) return matrix_norm(t, *ord, dims.value_or(Dims{0, 1}), keepdim, dtype);
  return vector_norm(t, ord.value_or(2), dims, keepdim, dtype);
}

Tensor norm(const Tensor& t, std::string_view ord, const OptionalDims& dims, bool keepdim, OptType dtype) {
  ops::require_defined(t, "linalg.norm", "A");
  if (dims && dims->size() != 1 && dims->size() != 2)
    throw RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}", dims->str());
  if (!dims && t.dim() != 1 && t.dim() != 2)
    throw RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.", t.dim());
  return matrix_norm(t, ord, dims.value_or(Dims{0, 1}), keepdim, dtype);
}

namespace {

void check_cond(const Tensor& a) {
  ops::require_defined(a, "linalg.cond", "A");
  if (a.dim() < 2) throw RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.");
}

// |A| |A⁻¹|, or inf if A is singular. `norm_of`: a matrix norm.
template <class F>
Tensor by_inverse(const Tensor& a, const std::string& order, F norm_of) {
  ops::require_square(a, fmt::format("linalg.cond(ord={})", order));
  if (a.numel() == 0) return zeros(ops::batch_of(a), Options(real_of(a.dtype()), a.device()));
  const auto [inverse, info] = inv_ex(a);
  const Tensor singular = gt(info, 0);
  // The inverse of a singular matrix is not finite, and neither would its gradient be: replace it by 0.
  const Tensor whole = where(singular.unsqueeze(-1).unsqueeze(-1), 0.0, inverse);
  return where(singular, kInfinity, norm_of(a) * norm_of(whole));
}

}  // namespace

Tensor cond(const Tensor& a, std::optional<double> p) {
  if (auto y = ops::wrapped("cond", kCond, a, p)) return *std::move(y);
  check_cond(a);
  const double order = p.value_or(2);
  const double size = std::abs(order);
  if (size == 2) {
    if (a.numel() == 0) return zeros(ops::batch_of(a), Options(real_of(a.dtype()), a.device()));
    const Tensor s = svdvals(a);
    const Tensor greatest = s.select(-1, 0), least = s.select(-1, -1);
    return order > 0 ? greatest / least : least / greatest;
  }
  const std::string name = order_name(order);
  if (size != 1 && !std::isinf(size)) throw ValueError("linalg.cond got an invalid norm type: {}", name);
  return by_inverse(a, name, [&](const Tensor& t) { return matrix_norm(t, order); });
}

Tensor cond(const Tensor& a, std::string_view p) {
  if (auto y = ops::wrapped("cond", kCond, a, p)) return *std::move(y);
  check_cond(a);
  if (p != "fro" && p != "nuc") throw ValueError("linalg.cond got an invalid norm type: {}", p);
  return by_inverse(a, std::string(p), [&](const Tensor& t) { return matrix_norm(t, p); });
}

}  // namespace naru::linalg

namespace naru {

Tensor renorm(const Tensor& t, double p, int64_t dim, double most) {
  if (auto y = ops::wrapped("renorm", renorm, t, p, dim, most)) return *std::move(y);
  ops::require_defined(t, "renorm", "input");
  if (!(p > 0)) throw RuntimeError("renorm: non-positive-norm not supported");
  if (most < 0) throw RuntimeError("renorm: expected maxnorm to be >= 0 but got {}", most);
  if (t.dim() < 2) throw RuntimeError("renorm: input needs at least 2 dimensions, got {} dimensions", t.dim());
  const int64_t d = wrap_dim(dim, t.dim());
  Dims others;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (i != d) others.push_back(i);
  const Tensor n = norm(t, p, others, true);
  return t.contiguous() * where(n > most, most / (n + 1e-7), ones_like(n));
}

Tensor norm_except_dim(const Tensor& t, double p, int64_t dim) {
  ops::require_defined(t, "norm_except_dim", "v");
  if (dim == -1) return norm(t, p);
  const int64_t kept = wrap_dim(dim, t.dim());
  Dims others;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != kept) others.push_back(d);
  return norm(t, p, others, true);
}

}  // namespace naru
