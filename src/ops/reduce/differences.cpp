// Differences of neighbors (diff), and integrals by the trapezoidal rule.
#include <algorithm>

#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/common.h"

namespace naru {

namespace {

Tensor differences(const Tensor& t, int64_t dim) {
  const int64_t n = t.size(dim);
  if (n == 0) return t;
  const Tensor behind = t.narrow(dim, 1, n - 1), before = t.narrow(dim, 0, n - 1);
  return t.dtype() == DType::Bool ? logical_xor(behind, before) : sub(behind, before);
}

// The steps of x, shaped to broadcast with y: a vector runs along `dim`, anything else broadcasts.
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

Tensor running_sum_of_pairs(const Tensor& y, const Tensor& widths, int64_t d) {
  const int64_t n = y.size(d);
  const Tensor pairs = y.narrow(d, 0, std::max<int64_t>(n - 1, 0)) + y.narrow(d, std::min<int64_t>(n, 1), std::max<int64_t>(n - 1, 0));
  return cumsum(widths.defined() ? pairs * widths : pairs, d) / 2;
}

void require_numbers_of(const Tensor& y) {
  ops::require_defined(y, "cumulative_trapezoid", "y");
  if (y.dtype() == DType::Bool) throw NotImplementedError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
}

}  // namespace

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

Tensor trapezoid(const Tensor& y, const Operand& dx, int64_t dim) {
  if (y.dtype() == DType::Bool) throw NotImplementedError("trapezoid: received a bool input for `y`, but bool is not supported");
  const int64_t n = y.size(dim);
  if (n == 0) return sum(y, Dims{dim});
  const Operand both[] = {y, dx};
  if (const DType type = ops::result_type(both); ops::is_half(type))  // computed in float32 and rounded once
    return trapezoid(y.to(DType::F32), dx.is_tensor() ? Operand(dx.tensor().to(DType::F32)) : dx, dim).to(type);
  return div(sum(mul(add(y.narrow(dim, 1, n - 1), y.narrow(dim, 0, n - 1)), dx), Dims{dim}), Operand(2.0));
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t n = y.size(dim);  // throws if there is no such dimension
  const Operand both[] = {y, x};
  if (const DType type = ops::result_type(both); n > 0 && ops::is_half(type))
    return trapezoid(y.to(DType::F32), x.to(DType::F32), dim).to(type);
  return n == 0 ? sum(y, Dims{dim}) : trapezoid(y, Operand(steps_beside(x, y, wrap_dim(dim, y.dim()))), dim);
}

Tensor cumulative_trapezoid(const Tensor& y, const Operand& dx, int64_t dim) {
  require_numbers_of(y);
  const Operand both[] = {y, dx};
  if (const DType type = ops::result_type(both); ops::is_half(type))  // computed in float32 and rounded once
    return cumulative_trapezoid(y.to(DType::F32), dx.is_tensor() ? Operand(dx.tensor().to(DType::F32)) : dx, dim).to(type);
  return running_sum_of_pairs(y, {}, wrap_dim(dim, y.dim())) * dx;
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  require_numbers_of(y);
  const int64_t d = wrap_dim(dim, y.dim());
  const Operand both[] = {y, x};
  if (const DType type = ops::result_type(both); ops::is_half(type))
    return cumulative_trapezoid(y.to(DType::F32), x.to(DType::F32), dim).to(type);
  Tensor at = x;
  if (x.dim() == 1) {
    if (x.numel() != y.size(d))
      throw RuntimeError("cumulative_trapezoid: There must be one `x` value for each sample point (got {} and {})", x.numel(), y.size(d));
    Dims line(static_cast<size_t>(y.dim()), 1);
    line[static_cast<size_t>(d)] = x.numel();
    at = x.reshape(line);
  }
  return running_sum_of_pairs(y, diff(at, 1, d), d);
}

}  // namespace naru
