// The functions of naru/ops/functions.h that belong to no other file here.
#include "naru/ops/functions.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

void define_vectors() {
  def(kFunction, "_write_out", "function, target, result", "Writes the result of a function of Python's to its out=, and returns that.",
      [](PyObject* function, const Tensor& out, const Tensor& result) -> PyObject* {
        const char* name = PyUnicode_AsUTF8(function);
        if (!name) throw nb::python_error();
        write_out(name, operators::record_of(name).out.rule, out, result);
        return wrap(out);
      });
  def(kBoth, "dist", "input, other, p=2", "The p-norm of the difference.",
      [](const Tensor& a, const Tensor& b, double p) { return dist(a, b, p); });
  def(kFunction, "cdist", "x1, x2, p=2.0, compute_mode=None", "(..., n, m): the p-norm distances of the rows (..., n, d) and (..., m, d).",
      [](const Tensor& a, const Tensor& b, double p, std::optional<std::string_view> mode) {
        return mode ? cdist(a, b, p, *mode) : cdist(a, b, p);
      });
  def(kBoth, "cross", "input, other, dim=None, *, out=None",
      "The cross product along a dimension of size 3, the first such one unless named.",
      [](const Tensor& a, const Tensor& b, OptInt dim) { return cross(a, b, dim); });
  def(kBoth, "kron", "input, other, *, out=None", "The Kronecker product.", [](const Tensor& a, const Tensor& b) { return kron(a, b); });
  def(kBoth, "diff", "input, n=1, dim=-1, prepend=None, append=None, *, out=None",
      "Differences of neighbours along a dimension, n times over.",
      [](const Tensor& t, int64_t n, int64_t dim, const OptTensor& prepend, const OptTensor& append) {
        return diff(t, n, dim, prepend.value_or(Tensor()), append.value_or(Tensor()));
      });
  def(kFunction, "trapezoid", "y, x=None, *, dx=1, dim=-1", "The integral by the trapezoidal rule.",
      [](const Tensor& y, const OptTensor& x, const Scalar& dx, int64_t dim) {
        return x ? trapezoid(y, *x, dim) : trapezoid(y, Operand(dx), dim);
      });
  add_alias("trapz", "trapezoid");
}

void define_statistics() {
  def(kBoth, "nanmean", "input, dim=None, keepdim=False, *, dtype=None, out=None", "The mean without NaNs.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim, OptType dtype) { return nanmean(t, dim, keepdim, dtype); });
  def(kBoth, "quantile", "input, q, dim=None, keepdim=False, *, interpolation='linear', out=None",
      "The elements at shares q of the sorted input, or between two.",
      [](const Tensor& t, const Operand& q, OptInt dim, bool keepdim, std::string_view interpolation) {
        return quantile(t, q, dim, keepdim, interpolation);
      });
  def(kBoth, "histc", "input, bins=100, min=0, max=0, *, out=None",
      "How many elements lie in each of `bins` equal parts of [min, max]; the input's range where both are 0.",
      [](const Tensor& t, int64_t bins, double low, double high) { return histc(t, bins, low, high); });
  const auto search = [](const Tensor& sorted, const Operand& v, bool narrow, bool right, OptText side, const OptTensor& sorter) {
    return searchsorted(sorted, v, narrow, right, side, sorter.value_or(Tensor()));
  };
  def(kFunction, "searchsorted", "sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None",
      "Where each value belongs in a sorted last dimension.", search);
  def(kFunction, "searchsorted", "sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None, out=None",
      "Where each value belongs in a sorted last dimension.", search);
  def(kBoth, "bucketize", "input, boundaries, *, out_int32=False, right=False, out=None",
      "Where each value belongs among sorted boundaries.",
      [](const Tensor& values, const Tensor& boundaries, bool narrow, bool right) { return bucketize(values, boundaries, narrow, right); });
  def(kFunction, "bucketize", "input, boundaries, *, out_int32=False, right=False, out=None",
      "Where a number belongs among sorted boundaries.", [](const Scalar& value, const Tensor& boundaries, bool narrow, bool right) {
        return searchsorted(boundaries, value, narrow, right, std::nullopt, Tensor());
      });
  def(kFunction, "isin", "elements, test_elements, *, assume_unique=False, invert=False, out=None",
      "Whether each element is one of the others.",
      [](const Operand& a, const Operand& b, Ignored, bool invert) { return isin(a, b, invert); });
  def(kBoth, "heaviside", "input, values, *, out=None", "0 below 0, 1 above, and `values` at 0.",
      [](const Tensor& a, const Tensor& v) { return heaviside(a, v); });
}

}  // namespace

void define_compositions() {
  define_vectors();
  define_statistics();
}

}  // namespace naru::py
