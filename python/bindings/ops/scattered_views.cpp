// Scatters into views, splits and other functions of naru/ops/functions.h.
#include "naru/ops/functions.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

void define_scattered() {
  def(kBoth, "select_scatter", "input, src, dim, index", "A copy with src at one place of a dimension.",
      [](const Tensor& t, const Tensor& source, int64_t dim, int64_t index) { return select_scatter(t, source, dim, index); });
  def(kBoth, "slice_scatter", "input, src, dim=0, start=None, end=None, step=1", "A copy with src in a slice of a dimension.",
      [](const Tensor& t, const Tensor& source, int64_t dim, OptInt start, OptInt end, int64_t step) {
        return slice_scatter(t, source, dim, start, end, step);
      });
  def(kBoth, "diagonal_scatter", "input, src, offset=0, dim1=0, dim2=1", "A copy with src on a diagonal.",
      [](const Tensor& t, const Tensor& source, int64_t offset, int64_t a, int64_t b) {
        return diagonal_scatter(t, source, offset, a, b);
      });
  def(kBoth, "as_strided_scatter", "input, src, size, stride, storage_offset=None", "A copy with src in its as_strided() view.",
      [](const Tensor& t, const Tensor& source, const Dims& size, const Dims& stride, OptInt offset) {
        return as_strided_scatter(t, source, size, stride, offset);
      });
  def(kBoth, "diag_embed", "input, offset=0, dim1=-2, dim2=-1", "Matrices with the last dimension on their diagonals.",
      [](const Tensor& t, int64_t offset, int64_t a, int64_t b) { return diag_embed(t, offset, a, b); });
  def(kBoth, "diagflat", "input, offset=0", "A matrix with all elements on its diagonal.",
      [](const Tensor& t, int64_t offset) { return diagflat(t, offset); });
}

void define_splits() {
  const auto define = [](const char* name, const char* doc, auto evenly, auto at) {
    def(kBoth, name, "input, sections", doc, [evenly](const Tensor& t, int64_t n) { return evenly(t, n); });
    def(kBoth, name, "input, indices", doc, [at](const Tensor& t, const Sequence& ends) { return at(t, ends.dims); });
    def(kBoth, name, "input, indices_or_sections", doc, [evenly](const Tensor& t, int64_t n) { return evenly(t, n); });
    def(kBoth, name, "input, indices_or_sections", doc, [at](const Tensor& t, const Sequence& ends) { return at(t, ends.dims); });
  };
  using Evenly = std::vector<Tensor> (*)(const Tensor&, int64_t);
  using At = std::vector<Tensor> (*)(const Tensor&, const Dims&);
  define("hsplit", "Pieces along dimension 1 (0 of a vector).", Evenly(&hsplit), At(&hsplit));
  define("vsplit", "Pieces along dimension 0.", Evenly(&vsplit), At(&vsplit));
  define("dsplit", "Pieces along dimension 2.", Evenly(&dsplit), At(&dsplit));
  for (const auto& [name, other] :
       {std::pair("unsafe_split", "split"), std::pair("unsafe_chunk", "chunk"), std::pair("unsafe_split_with_sizes", "split_with_sizes")})
    add_alias(name, other);
}

// Spacing is a list of numbers or tensors, or one number for all.
std::vector<Tensor> gradient_of(const Tensor& t, PyObject* spacing, const OptionalDims& dims, int64_t order) {
  Scalar step = 1;
  if (spacing == Py_None || scalar_from(spacing, step)) return gradient(t, step, dims, order);
  nb::object list =
      nb::steal(check(PySequence_Fast(spacing, "gradient(): argument 'spacing' must be a number or a list of numbers or Tensors")));
  std::vector<Operand> all;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.ptr(), i);
    if (is_tensor(item))
      all.emplace_back(tensor_of(item));
    else if (scalar_from(item, step))
      all.emplace_back(step);
    else
      throw TypeError("gradient(): argument 'spacing' must be a number or a list of numbers or Tensors, not a list of {}",
                      Py_TYPE(item)->tp_name);
  }
  return gradient(t, all, dims, order);
}

void define_others() {
  def(kBoth, "narrow_copy", "input, dim, start, length, *, out=None", "A copy of narrow().",
      [](const Tensor& t, int64_t dim, int64_t start, int64_t length) { return narrow_copy(t, dim, start, length); });
  def(kMethod, "sum_to_size", "input, *size", "The sum over dimensions that are not in size, or 1 there.",
      [](const Tensor& t, const Dims& size) { return sum_to_size(t, size); });
  const auto unravel = [](const Tensor& t, const Dims& shape) { return unravel_index(t, shape); };
  def(kFunction, "unravel_index", "indices, shape", "The coordinates, in a tensor of this shape, of elements numbered row by row.",
      unravel);
  def(kBoth, "nonzero_static", "input, *, size, fill_value=-1, out=None", "nonzero() cut or filled up to so many rows.",
      [](const Tensor& t, int64_t size, int64_t fill) { return nonzero_static(t, size, fill); });
  def(kFunction, "norm_except_dim", "v, pow=2, dim=0", "The p-norm over all dimensions but one.",
      [](const Tensor& t, double p, int64_t dim) { return norm_except_dim(t, p, dim); });
  def(kFunction, "pdist", "input, p=2", "The p-norm distances of all pairs of rows.",
      [](const Tensor& t, double p) { return pdist(t, p); });
  def(kBoth, "addbmm", "input, batch1, batch2, *, beta=1, alpha=1, out=None", "beta * input + alpha * the sum of the products of a batch.",
      [](const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
        return addbmm(c, a, b, beta, alpha);
      });
  def(kFunction, "gradient", "input, *, spacing=None, dim=None, edge_order=1",
      "Derivatives along dimensions, by differences of neighbours.",
      [](const Tensor& t, PyObject* spacing, const OptionalDims& dims, int64_t order) { return gradient_of(t, spacing, dims, order); });
  def(kMethod, "new_empty_strided", "input, size, stride, @options", "An undefined tensor of this one's dtype and device.",
      [](const Tensor& t, const Dims& sizes, const Dims& strides, const Options& given) {
        Options o = given;
        if (!o.dtype) o.dtype = t.dtype();
        if (!o.device) o.device = t.device();
        return empty_strided(sizes, strides, o);
      });
}

}  // namespace

void define_scattered_views() {
  define_scattered();
  define_splits();
  define_others();
  add_in_place("addbmm");
}

}  // namespace naru::py
