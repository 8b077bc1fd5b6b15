// Functions that are a few other functions: nothing here but expressions, so that gradients follow of themselves.
#include <algorithm>
#include <cmath>

#include "naru/compositions.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

using OptInt = std::optional<int64_t>;
using OptTensor = std::optional<Tensor>;
using List = std::vector<Tensor>;

Tensor differences(const Tensor& t, int64_t dim) {
  const int64_t n = t.size(dim);
  if (n == 0) return t;
  const Tensor behind = t.narrow(dim, 1, n - 1), before = t.narrow(dim, 0, n - 1);
  return t.dtype() == DType::Bool ? logical_xor(behind, before) : sub(behind, before);
}

// How far from the element below to the one above a place between them is taken to be.
double share_of(double fraction, double place, std::string_view interpolation) {
  if (interpolation == "linear") return fraction;
  if (interpolation == "lower") return 0;
  if (interpolation == "higher") return fraction > 0 ? 1 : 0;
  if (interpolation == "midpoint") return fraction > 0 ? 0.5 : 0;
  if (interpolation == "nearest") return std::nearbyint(place) - std::floor(place);
  throw RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", interpolation);
}

// The value at share q of the way through the sorted elements, or between two of them.
Tensor quantile(const Tensor& t, const Tensor& q, OptInt given, bool keepdim, std::string_view interpolation) {
  if (!is_floating(t.dtype()))
    throw RuntimeError("quantile() input tensor must be either float or double dtype, got {}", name_of(t.dtype()));
  if (q.dim() > 1) throw RuntimeError("quantile() q must be a scalar or 1D tensor");
  const Tensor x = given && t.dim() > 0 ? t : t.reshape({-1});
  const int64_t dim = wrap_dim(given.value_or(0), x.dim()), n = x.size(dim);
  if (t.numel() == 0) throw RuntimeError("quantile() input tensor must be non-empty");
  const Tensor sorted = sort(x, dim).first;
  const Tensor last = sorted.select(dim, n - 1);  // NaN where one is NaN
  List results;
  const auto shares = q.to_doubles();
  for (double share : shares) {
    if (!(share >= 0 && share <= 1)) throw RuntimeError("quantile() q values must be in the range [0, 1], got {}", share);
    const double place = share * static_cast<double>(n - 1);
    const auto low = static_cast<int64_t>(std::floor(place));
    const Tensor a = sorted.select(dim, low), b = sorted.select(dim, std::min(low + 1, n - 1));
    Tensor value = where(isnan(last), last, lerp(a, b, Operand(share_of(place - static_cast<double>(low), place, interpolation))));
    if (keepdim) {
      if (given && t.dim() > 0)
        value = value.unsqueeze(dim);
      else
        for (int64_t d = 0; d < t.dim(); ++d) value = value.unsqueeze(0);
    }
    results.push_back(value);
  }
  if (results.empty()) {
    Dims shape = x.sizes();
    keepdim ? void(shape[static_cast<size_t>(dim)] = 1) : void(shape.erase(static_cast<size_t>(dim)));
    if (keepdim && !given) shape = Dims(static_cast<size_t>(t.dim()), 1);
    shape.insert(0, 0);
    return empty(shape, Options(t.dtype(), t.device()));
  }
  return q.dim() == 0 ? results[0] : stack(results, 0);
}

Tensor kronecker(const Tensor& a, const Tensor& b) {
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

// How many elements of the sorted last dimension lie below each value (or at it, right). Compares each with each.
Tensor places(const Tensor& sorted, const Tensor& values, bool right) {
  const Tensor s = sorted.unsqueeze(-2), v = values.unsqueeze(-1);
  const Tensor below = right ? le(s, v) : lt(s, v);
  return sum(is_floating(values.dtype()) ? logical_or(below, isnan(v)) : below, Dims{-1});  // NaN comes last
}

void define_vectors() {
  def(kFunction, "_write_out", "function, target, result", "Writes the result of a function of Python's to its out=, and returns that.",
      [](PyObject* function, const Tensor& out, const Tensor& result) -> PyObject* {
        const char* name = PyUnicode_AsUTF8(function);
        if (!name) throw nb::python_error();
        write_out(name, out_rule(name), out, result);
        return wrap(out);
      });
  def(kBoth, "dist", "input, other, p=2", "The p-norm of the difference.",
      [](const Tensor& a, const Tensor& b, double p) { return norm(sub(a, b), p); });
  def(kFunction, "cdist", "x1, x2, p=2.0, compute_mode=None", "(..., n, m): the p-norm distances of the rows (..., n, d) and (..., m, d).",
      [](const Tensor& a, const Tensor& b, double p, Ignored) { return cdist(a, b, p); });
  def(kBoth, "cross", "input, other, dim=None, *, out=None",
      "The cross product along a dimension of size 3, the first such one unless named.",
      [](const Tensor& a, const Tensor& b, OptInt dim) { return cross(a, b, dim); });
  def(kBoth, "kron", "input, other, *, out=None", "The Kronecker product.",
      [](const Tensor& a, const Tensor& b) { return kronecker(a, b); });
  def(kBoth, "diff", "input, n=1, dim=-1, prepend=None, append=None, *, out=None",
      "Differences of neighbours along a dimension, n times over.",
      [](const Tensor& t, int64_t n, int64_t dim, const OptTensor& before, const OptTensor& behind) {
        if (n < 0) throw RuntimeError("order must be non-negative but got {}", n);
        List parts;
        if (before) parts.push_back(*before);
        parts.push_back(t);
        if (behind) parts.push_back(*behind);
        Tensor out = parts.size() > 1 ? cat(parts, dim) : t;
        for (int64_t i = 0; i < n && (out.dim() == 0 || out.size(dim) > 0); ++i) out = differences(out, dim);
        return out;
      });
  def(kFunction, "trapezoid", "y, x=None, *, dx=1, dim=-1", "The integral by the trapezoidal rule.",
      [](const Tensor& y, const OptTensor& x, const Scalar& dx, int64_t dim) {
        const int64_t n = y.size(dim);
        if (n == 0) return sum(y, Dims{dim});
        const Tensor heights = mul(add(y.narrow(dim, 1, n - 1), y.narrow(dim, 0, n - 1)), Operand(0.5));
        return sum(x ? mul(heights, differences(*x, -1)) : mul(heights, Operand(dx)), Dims{dim});
      });
  add_alias("trapz", "trapezoid");
  def(kFunction, "column_stack", "tensors, *, out=None", "Tensors side by side; vectors count as columns.", [](const List& tensors) {
    List columns;
    for (const Tensor& t : tensors) columns.push_back(t.dim() < 2 ? t.reshape({-1, 1}) : t);
    return cat(columns, 1);
  });
  def(kFunction, "dstack", "tensors, *, out=None", "Tensors behind each other, along dimension 2.", [](const List& tensors) {
    List deep;
    for (const Tensor& t : tensors) deep.push_back(t.dim() < 2 ? t.reshape({1, -1, 1}) : t.dim() == 2 ? t.unsqueeze(2) : t);
    return cat(deep, 2);
  });
}

void define_statistics() {
  def(kBoth, "nanmean", "input, dim=None, keepdim=False, *, dtype=None, out=None", "The mean without NaNs.",
      [](const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
        const Tensor x = dtype ? t.to(*dtype) : t;
        return div(sum(where(isnan(x), Operand(0.0), x), dim, keepdim), sum(logical_not(isnan(x)), dim, keepdim));
      });
  def(kBoth, "quantile", "input, q, dim=None, keepdim=False, *, interpolation='linear', out=None",
      "The elements at shares q of the sorted input, or between two.",
      [](const Tensor& t, const Operand& q, OptInt dim, bool keepdim, std::string_view interpolation) {
        return quantile(t, q.is_tensor() ? q.tensor() : scalar_tensor(q.scalar(), DType::F64), dim, keepdim, interpolation);
      });
  def(kBoth, "histc", "input, bins=100, min=0, max=0, *, out=None",
      "How many elements lie in each of `bins` equal parts of [min, max]; the input's range where both are 0.",
      [](const Tensor& t, int64_t bins, double low, double high) {
        if (bins < 1) throw RuntimeError("bins must be > 0, got {}", bins);
        const Tensor x = t.detach().reshape({-1});
        if (low == 0 && high == 0 && x.numel() > 0) low = min(x).item<double>(), high = max(x).item<double>();
        if (!std::isfinite(low) || !std::isfinite(high)) throw RuntimeError("torch.histc: range of [{}, {}] is not finite", low, high);
        if (low == high) low -= 1, high += 1;
        if (low > high) throw RuntimeError("max must be larger than min, got {} and {}", high, low);
        const Tensor inside = masked_select(x, logical_and(ge(x, Operand(low)), le(x, Operand(high))));
        const Tensor place = mul(sub(inside, Operand(low)), Operand(static_cast<double>(bins) / (high - low))).to(DType::I64);
        return bincount(clamp_max(place, Operand(bins - 1)), bins).to(t.dtype());
      });
  const auto search = [](const Tensor& sorted, const Operand& values, bool narrow, bool right, std::optional<std::string_view> side,
                         const OptTensor& sorter) {
    if (side && *side != "left" && *side != "right")
      throw RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
    if (side && *side == "left" && right)
      throw RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    const Tensor in_order = sorter ? gather(sorted, -1, *sorter) : sorted;
    const Tensor v = values.is_tensor() ? values.tensor() : scalar_tensor(values.scalar(), sorted.device());
    const bool behind = right || (side && *side == "right");
    const Tensor out = v.dim() == 0 ? places(in_order, v.reshape({1}), behind).reshape({}) : places(in_order, v, behind);
    return narrow ? out.to(DType::I32) : out;
  };
  def(kFunction, "searchsorted", "sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None",
      "Where each value belongs in a sorted last dimension. Compares each with each.", search);
  def(kFunction, "searchsorted", "sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None, out=None",
      "Where each value belongs in a sorted last dimension. Compares each with each.", search);
  def(kBoth, "bucketize", "input, boundaries, *, out_int32=False, right=False, out=None",
      "Where each value belongs among sorted boundaries. Compares each with each.",
      [](const Tensor& values, const Tensor& boundaries, bool narrow, bool right) {
        const Tensor out = places(boundaries, values.reshape({-1}), right).reshape(values.sizes());
        return narrow ? out.to(DType::I32) : out;
      });
  def(kFunction, "isin", "elements, test_elements, *, assume_unique=False, invert=False, out=None",
      "Whether each element is one of the others. Compares each with each.",
      [](const Operand& elements, const Operand& b, Ignored, bool invert) {
        if (!elements.is_tensor() && !b.is_tensor()) throw TypeError("isin(): wanted a Tensor among elements and test_elements");
        const Tensor a = elements.is_tensor() ? elements.tensor() : scalar_tensor(elements.scalar(), b.tensor().device());
        const Tensor found = b.is_tensor() ? any(eq(a.unsqueeze(-1), b.tensor().reshape({-1})), Dims{-1}) : eq(a, b);
        return invert ? logical_not(found) : found;
      });
  def(kBoth, "heaviside", "input, values, *, out=None", "0 below 0, 1 above, and `values` at 0.", [](const Tensor& a, const Tensor& v) {
    if (a.dtype() != v.dtype())
      throw RuntimeError("heaviside is not yet implemented for tensors with different dtypes. (got {} and {})", name_of(a.dtype()),
                         name_of(v.dtype()));
    return where(eq(a, Operand(0)), v, gt(a, Operand(0)).to(a.dtype()));
  });
}

}  // namespace

void define_compositions() {
  define_vectors();
  define_statistics();
}

}  // namespace naru::py
