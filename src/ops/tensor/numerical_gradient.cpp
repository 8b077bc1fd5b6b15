// torch.gradient: numerical derivatives of sampled functions.
#include "naru/ops/functions.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

// Weights of three neighbors, for the derivative at the first, middle or last one: scalars, or tensors that broadcast along the dimension.
struct Weights {
  Operand before, here, after;
};

Tensor combined(const Tensor& t, int64_t dim, int64_t from, int64_t count, const Weights& w) {
  // Separate statements: gradients are summed in the order of the nodes, which must not depend on the compiler.
  const Tensor after = t.narrow(dim, from + 2, count) * w.after;
  const Tensor here = t.narrow(dim, from + 1, count) * w.here;
  return t.narrow(dim, from, count) * w.before + here + after;
}

// The difference of elements that are `apart` apart, for `count` starts from index `from`.
Tensor difference(const Tensor& t, int64_t dim, int64_t from, int64_t count, int64_t apart) {
  const Tensor before = t.narrow(dim, from, count);
  return t.narrow(dim, from + apart, count) - before;
}

Tensor slope(const Tensor& t, int64_t dim, int64_t from, const Operand& step) { return difference(t, dim, from, 1, 1) / step; }

Tensor by_steps(const Tensor& t, int64_t dim, const Scalar& h, int64_t order) {
  const int64_t n = t.size(dim);
  const Operand step(h);
  const auto edge = [&](int64_t from, double a, double b, double c) {
    return combined(t, dim, from, 1, {Operand(a), Operand(b), Operand(c)}) / step;
  };
  const Tensor first = order == 1 ? slope(t, dim, 0, step) : edge(0, -1.5, 2, -0.5);
  const Tensor last = order == 1 ? slope(t, dim, n - 2, step) : edge(n - 3, 0.5, -2, 1.5);
  if (n == 2) return cat({first, last}, dim);
  return cat({first, difference(t, dim, 0, n - 2, 2) / step / Operand(2.0), last}, dim);
}

Tensor by_coordinates(const Tensor& t, int64_t dim, const Tensor& points, int64_t order) {
  const int64_t n = t.size(dim);
  if (points.dim() != 1 || points.size(0) != n)
    throw RuntimeError(
        "torch.gradient expected each element of spacing to have one dimension and the size of the dimension it is for, but got {} for {}",
        points.sizes().str(), n);
  Dims shape(t.sizes().size(), 1);
  shape[static_cast<size_t>(dim)] = n - 1;
  const Tensor steps = diff(points).view(shape);
  const auto step = [&](int64_t i) { return steps.narrow(dim, i, 1); };
  const auto first = [&] {
    if (order == 1) return slope(t, dim, 0, step(0));
    const Tensor a = step(0), b = step(1);
    return combined(t, dim, 0, 1, {-(a * 2.0 + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))});
  };
  const auto last = [&] {
    if (order == 1) return slope(t, dim, n - 2, step(n - 2));
    const Tensor a = step(n - 3), b = step(n - 2);
    return combined(t, dim, n - 3, 1, {b / (a * (a + b)), -(a + b) / (a * b), (b * 2.0 + a) / (b * (a + b))});
  };
  if (n == 2) return cat({first(), last()}, dim);
  const Tensor a = steps.narrow(dim, 0, n - 2), b = steps.narrow(dim, 1, n - 2);
  return cat({first(), combined(t, dim, 0, n - 2, {-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))}), last()}, dim);
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& t, const Scalar& spacing, const OptionalDims& dims, int64_t edge_order) {
  ops::require_defined(t, "gradient", "input");
  const size_t count = dims ? dims->size() : t.sizes().size();
  return gradient(t, std::vector<Operand>(count, Operand(spacing)), dims, edge_order);
}

std::vector<Tensor> gradient(const Tensor& t, const std::vector<Operand>& spacing, const OptionalDims& given, int64_t edge_order) {
  ops::require_defined(t, "gradient", "input");
  if (t.dtype() == DType::U8) throw NotImplementedError("torch.gradient does not support uint8 input.");
  Dims dims;
  if (given)
    dims = *given;
  else
    for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  if (spacing.size() != dims.size()) {
    if (!given)
      throw RuntimeError(
          "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {}', since dim "
          "argument was not given, but got a list of length {}",
          t.dim(), spacing.size());
    throw RuntimeError(
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, but "
        "got a spacing argument of length {} and a dim argument of length {}.",
        spacing.size(), dims.size());
  }
  if (edge_order != 1 && edge_order != 2) throw RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.");
  uint64_t seen = 0;
  for (int64_t& d : dims) {
    d = wrap_dim(d, t.dim());
    if (seen >> d & 1) throw RuntimeError("dim {} appears multiple times in the list of dims", d);
    seen |= uint64_t{1} << d;
    if (t.size(d) <= edge_order) throw RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1");
  }
  const Tensor x = is_inexact(t.dtype()) ? t : t.to(default_dtype());
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i)
    out.push_back(spacing[i].is_tensor() ? by_coordinates(x, dims[i], spacing[i].tensor(), edge_order)
                                         : by_steps(x, dims[i], spacing[i].scalar(), edge_order));
  return out;
}

}  // namespace naru
