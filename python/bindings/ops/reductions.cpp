// Reductions, comparisons and products.
#include <cmath>

#include "core/uninitialized.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"
#include "object/tensor_object.h"
#include "ops/linalg/matmul.h"

namespace naru::py {
namespace {

// The correction: `correction` if given, else by `unbiased`.
double correction_of(const std::optional<bool>& unbiased, const std::optional<Scalar>& correction) {
  return correction ? correction->to_double() : unbiased.value_or(true) ? 1 : 0;
}

double order_of(PyObject* p) {
  Scalar s;
  if (p == Py_None) return 2;
  if (PyUnicode_Check(p)) {
    if (PyUnicode_CompareWithASCIIString(p, "fro") == 0) return 2;
    throw RuntimeError("linalg.matrix_norm: Order {} not supported. (norm: p must be a number, 'fro' or 'nuc')", printable(p));
  }
  if (!scalar_from(p, s)) throw TypeError("norm(): argument 'p' must be Number, not {}", Py_TYPE(p)->tp_name);
  return s.to_double();
}

void define_sums() {
  def(kBoth, "sum", "input, *, dtype=None", "The sum of the elements; integers are summed in int64.",
      [](const Tensor& t, OptType dtype) { return sum(t, {}, false, dtype); });
  def(kBoth, "sum", "input, dim, keepdim=False, *, dtype=None, out=None", "The sums along dimensions.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim, OptType dtype) { return sum(t, dim, keepdim, dtype); });
  def(kBoth, "nansum", "input, dim=None, keepdim=False, *, dtype=None, out=None", "The sum without NaNs.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim, OptType dtype) { return nansum(t, dim, keepdim, dtype); });
  def(kBoth, "mean", "input, dim=None, keepdim=False, *, dtype=None, out=None",
      "The mean of the elements, of all or along dimensions; floating point only.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim, OptType dtype) { return mean(t, dim, keepdim, dtype); });
  def(kBoth, "prod", "input, *, dtype=None", "The product of the elements.",
      [](const Tensor& t, OptType dtype) { return prod(t, {}, false, dtype); });
  def(kBoth, "prod", "input, dim, keepdim=False, *, dtype=None, out=None", "The products along one dimension.",
      [](const Tensor& t, int64_t dim, bool keepdim, OptType dtype) { return prod(t, dim, keepdim, dtype); });
  def(kBoth, "cumsum", "input, dim, *, dtype=None, out=None", "Sums of the elements up to each place of a dimension.",
      [](const Tensor& t, int64_t dim, OptType dtype) { return cumsum(t, dim, dtype); });
  def(kBoth, "cumprod", "input, dim, *, dtype=None, out=None", "Products of the elements up to each place of a dimension.",
      [](const Tensor& t, int64_t dim, OptType dtype) { return cumprod(t, dim, dtype); });
  def(kBoth, "logsumexp", "input, dim, keepdim=False, *, out=None", "log(sum(exp(input))) along dimensions, without overflow.",
      [](const Tensor& t, const Dims& dim, bool keepdim) { return logsumexp(t, dim, keepdim); });
  def(kBoth, "count_nonzero", "input, dim=None", "How many elements are not 0.",
      [](const Tensor& t, const OptionalDims& dim) { return count_nonzero(t, dim); });
  def(kBoth, "norm", "input, p='fro', dim=None, keepdim=False, dtype=None, *, out=None", "The p-norm, of all elements or along dimensions.",
      [](const Tensor& t, PyObject* p, const OptionalDims& dim, bool keepdim, OptType dtype) -> PyObject* {
        if (PyUnicode_Check(p) && PyUnicode_CompareWithASCIIString(p, "nuc") == 0)
          return wrap(linalg::matrix_norm(t, "nuc", dim.value_or(Dims{-2, -1}), keepdim, dtype));
        return wrap(norm(t, order_of(p), dim, keepdim, dtype));
      });
  def(kFunction, "_vector_norm", "input, ord=2, dim=None, keepdim=False, *, dtype=None", "The p-norm, of all elements or along dimensions.",
      [](const Tensor& t, double p, const OptionalDims& dim, bool keepdim, OptType dtype) { return norm(t, p, dim, keepdim, dtype); });
}

void define_spreads() {
  const auto spread = [](const char* name, auto f) {
    def(kBoth, name, "input, dim=None, *, correction=1, keepdim=False, out=None", "Variance or standard deviation, over n - correction.",
        [f](const Tensor& t, const OptionalDims& dim, const std::optional<Scalar>& correction, bool keepdim) {
          return f(t, dim, correction ? correction->to_double() : 1, keepdim);
        });
    def(kBoth, name, "input, unbiased", "Over n - 1 if unbiased, else n.",
        [f](const Tensor& t, bool unbiased) { return f(t, OptionalDims(), unbiased ? 1 : 0, false); });
    def(kBoth, name, "input, dim, unbiased=True, keepdim=False, *, out=None", "Over n - 1 if unbiased, else n.",
        [f](const Tensor& t, const OptionalDims& dim, bool unbiased, bool keepdim) { return f(t, dim, unbiased ? 1 : 0, keepdim); });
    def(kBoth, name, "input, *, unbiased", "Over n - 1 if unbiased, else n.",
        [f](const Tensor& t, bool unbiased) { return f(t, OptionalDims(), unbiased ? 1 : 0, false); });
  };
  spread("var", [](const Tensor& t, const OptionalDims& d, double c, bool k) { return var(t, d, c, k); });
  spread("std", [](const Tensor& t, const OptionalDims& d, double c, bool k) { return naru::std(t, d, c, k); });
  def(kFunction, "var_mean", "input, unbiased", "Over n - 1 if unbiased, else n.",
      [](const Tensor& t, bool unbiased) { return var_mean(t, OptionalDims(), unbiased ? 1 : 0, false); });
  def(kFunction, "var_mean", "input, dim=None, unbiased=None, keepdim=False, *, correction=None", "(variance, mean).",
      [](const Tensor& t, const OptionalDims& dim, const std::optional<bool>& unbiased, bool keepdim,
         const std::optional<Scalar>& correction) { return var_mean(t, dim, correction_of(unbiased, correction), keepdim); });
  def(kFunction, "std_mean", "input, unbiased", "Over n - 1 if unbiased, else n.",
      [](const Tensor& t, bool unbiased) { return std_mean(t, OptionalDims(), unbiased ? 1 : 0); });
  def(kFunction, "std_mean", "input, dim=None, unbiased=None, keepdim=False, *, correction=None", "(standard deviation, mean).",
      [](const Tensor& t, const OptionalDims& dim, const std::optional<bool>& unbiased, bool keepdim,
         const std::optional<Scalar>& correction) { return std_mean(t, dim, correction_of(unbiased, correction), keepdim); });
}

void define_extremes() {
  def(kBoth, "max", "input, *, out=None", "The greatest element.", [](const Tensor& t) { return max(t); });
  def(kBoth, "max", "input, other, *, out=None", "The greater of both, element by element.",
      [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
  def(kBoth, "max", "input, dim, keepdim=False, *, out=None",
      "The greatest elements along a dimension and their places: (values, indices).",
      [](const Tensor& t, int64_t dim, bool keepdim) { return named("max", max(t, dim, keepdim)); });
  def(kBoth, "min", "input, *, out=None", "The least element.", [](const Tensor& t) { return min(t); });
  def(kBoth, "min", "input, other, *, out=None", "The lesser of both, element by element.",
      [](const Tensor& a, const Tensor& b) { return minimum(a, b); });
  def(kBoth, "min", "input, dim, keepdim=False, *, out=None", "The least elements along a dimension and their places: (values, indices).",
      [](const Tensor& t, int64_t dim, bool keepdim) { return named("min", min(t, dim, keepdim)); });
  def(kBoth, "amax", "input, dim=(), keepdim=False, *, out=None", "The greatest elements, of all or along dimensions.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim) { return amax(t, dim && dim->empty() ? OptionalDims() : dim, keepdim); });
  def(kBoth, "amin", "input, dim=(), keepdim=False, *, out=None", "The least elements, of all or along dimensions.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim) { return amin(t, dim && dim->empty() ? OptionalDims() : dim, keepdim); });
  def(kBoth, "aminmax", "input, *, dim=None, keepdim=False, out=None", "(min, max), of all elements or along a dimension.",
      [](const Tensor& t, OptInt dim, bool keepdim) {
        const auto [least, greatest] = aminmax(t, dim, keepdim);
        return Named{"aminmax", least, greatest, "min", "max"};
      });
  def(kBoth, "argmax", "input, dim=None, keepdim=False, *, out=None",
      "The place of the greatest element (the first of several), in all or along a dimension.",
      [](const Tensor& t, OptInt dim, bool keepdim) { return argmax(t, dim, keepdim); });
  def(kBoth, "argmin", "input, dim=None, keepdim=False, *, out=None",
      "The place of the least element (the first of several), in all or along a dimension.",
      [](const Tensor& t, OptInt dim, bool keepdim) { return argmin(t, dim, keepdim); });
  def(kBoth, "any", "input, dim=None, keepdim=False, *, out=None", "Whether any element is true.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim) { return any(t, dim, keepdim); });
  def(kBoth, "all", "input, dim=None, keepdim=False, *, out=None", "Whether all elements are true.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim) { return all(t, dim, keepdim); });
  def(kBoth, "median", "input", "The lower median of all elements; NaN if one is NaN.", [](const Tensor& t) { return median(t); });
  def(kBoth, "median", "input, dim, keepdim=False, *, out=None",
      "The lower medians along a dimension and their places: (values, indices). NaN where an element is NaN.",
      [](const Tensor& t, int64_t dim, bool keepdim) { return named("median", median(t, dim, keepdim)); });
  def(kBoth, "equal", "input, other", "Whether shapes and all elements are equal.",
      [](const Tensor& a, const Tensor& b) { return equal(a, b); });
  def(kBoth, "allclose", "input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
      "Whether |input - other| <= atol + rtol * |other| everywhere.",
      [](const Tensor& a, const Tensor& b, double rtol, double atol, bool nan) { return allclose(a, b, rtol, atol, nan); });
  def(kBoth, "isclose", "input, other, rtol=1e-05, atol=1e-08, equal_nan=False", "Where |input - other| <= atol + rtol * |other|.",
      [](const Tensor& a, const Tensor& b, double rtol, double atol, bool nan) { return isclose(a, b, rtol, atol, nan); });
}

void define_products() {
  def(kBoth, "matmul", "input, other, *, out=None", "The matrix product; leading dimensions broadcast, vectors count as rows or columns.",
      [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  def(kBoth, "mm", "input, mat2, *, out=None", "The product of two matrices.", [](const Tensor& a, const Tensor& b) { return mm(a, b); });
  def(kFunction, "_int_mm", "input, mat2, *, out=None", "The product of two matrices of int8 or uint8, in int32.",
      [](const Tensor& a, const Tensor& b) { return ops::int_mm(a, b); });
  def(kFunction, "_scaled_mm",
      "input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None",
      "The product of two float8 matrices whose elements stand for themselves times float32 scales, of one element or of a row each.",
      [](const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, const std::optional<Tensor>& bias,
         const std::optional<Tensor>& scale_result, std::optional<DType> type,
         bool) { return ops::scaled_mm(a, b, scale_a, scale_b, bias.value_or(Tensor()), scale_result.value_or(Tensor()), type); });
  def(kBoth, "bmm", "input, mat2, *, out=None", "Products of two batches of matrices, (b, n, m) and (b, m, p).",
      [](const Tensor& a, const Tensor& b) { return bmm(a, b); });
  def(kBoth, "mv", "input, vec, *, out=None", "A matrix times a vector.", [](const Tensor& a, const Tensor& b) { return mv(a, b); });
  def(kBoth, "dot", "input, tensor, *, out=None", "The sum of the products of two vectors.",
      [](const Tensor& a, const Tensor& b) { return dot(a, b); });
  def(kBoth, "inner", "input, other, *, out=None", "Sums of products along the last dimension.",
      [](const Tensor& a, const Tensor& b) { return inner(a, b); });
  def(kBoth, "outer", "input, vec2, *, out=None", "The products of all pairs of elements of two vectors.",
      [](const Tensor& a, const Tensor& b) { return outer(a, b); });
  add_alias("ger", "outer");
  def(kBoth, "addmm", "input, mat1, mat2, *, beta=1, alpha=1, out=None", "beta * input + alpha * mat1 mat2.",
      [](const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
        return addmm(c, a, b, beta, alpha);
      });
  def(kBoth, "baddbmm", "input, batch1, batch2, *, beta=1, alpha=1, out=None", "beta * input + alpha * batch1 batch2.",
      [](const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
        return baddbmm(c, a, b, beta, alpha);
      });
  def(kBoth, "addmv", "input, mat, vec, *, beta=1, alpha=1, out=None", "beta * input + alpha * mat vec.",
      [](const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
        return addmv(c, a, b, beta, alpha);
      });
  def(kFunction, "_use_deterministic_algorithms", "mode", "Takes naru's own product everywhere, whose bits are the same on every device.",
      [](bool on) { use_deterministic_algorithms(on); });
  def(kFunction, "are_deterministic_algorithms_enabled", "", "Whether use_deterministic_algorithms(True) holds.",
      [] { return deterministic_algorithms(); });
  def(kFunction, "_set_deterministic_fill_uninitialized_memory", "mode", "Whether deterministic mode fills memory that nobody has written.",
      [](bool on) { fill_uninitialized_memory(on); });
  def(kFunction, "_get_deterministic_fill_uninitialized_memory", "", "What was set last; at first it does.",
      [] { return fills_uninitialized_memory(); });
  def(kFunction, "_allow_tf32", "mode", "Whether float32 factors of products on cuda may be rounded to TF32.",
      [](bool on) { allow_tf32(on); });
  def(kFunction, "_tf32_allowed", "", "What was set last; at first not.", [] { return tf32_allowed(); });
  def(kFunction, "_allow_reduced_precision_reduction", "dtype, mode",
      "Whether parts of sums of float16 or bfloat16 may be added up in that type.",
      [](DType half, bool on) { allow_reduced_precision_reduction(half, on); });
  def(kFunction, "_reduced_precision_reduction_allowed", "dtype", "What was set last; at first they may.",
      [](DType half) { return reduced_precision_reduction_allowed(half); });
}

}  // namespace

void define_reductions() {
  define_sums();
  define_spreads();
  define_extremes();
  define_products();
}

}  // namespace naru::py
