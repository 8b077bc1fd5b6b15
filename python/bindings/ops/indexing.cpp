// Gathering, scattering, masks, sorting.
#include "naru/ops/functions.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

// The indices of index_put; None means a whole dimension.
std::vector<Index> places_from(PyObject* indices) {
  if (!PyTuple_Check(indices) && !PyList_Check(indices))
    throw TypeError("index_put_(): argument 'indices' must be tuple of Tensors, not {}", Py_TYPE(indices)->tp_name);
  std::vector<Index> parts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(indices); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(indices, i);
    if (item == Py_None)
      parts.push_back(Index(Slice()));
    else if (is_tensor(item))
      parts.push_back(Index(tensor_of(item)));
    else
      throw TypeError("index_put_(): argument 'indices' must be tuple of Tensors, got {} at {}", Py_TYPE(item)->tp_name, i);
  }
  return parts;
}

void define_gathers() {
  def(kBoth, "gather", "input, dim, index, *, sparse_grad=False, out=None", "out[i][j] = input[index[i][j]][j] for dim 0, and so on.",
      [](const Tensor& t, int64_t dim, const Tensor& index, Ignored) { return gather(t, dim, index); });
  def(kBoth, "take_along_dim", "input, indices, dim=None, *, out=None",
      "The same as gather; negative positions count from the end. Without dim, in the flattened input.",
      [](const Tensor& t, const Tensor& index, OptInt dim) { return take_along_dim(t, index, dim); });
  def(kBoth, "scatter", "input, dim, index, src, *, out=None", "A copy with out[index[i][j]][j] = src[i][j] for dim 0, and so on.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src) { return scatter(t, dim, index, src); });
  def(kBoth, "scatter", "input, dim, index, value, *, out=None", "A copy with the value at the indexed places.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Scalar& value) { return scatter(t, dim, index, Operand(value)); });
  def(kMethod, "scatter_", "input, dim, index, src", "Writes src at the indexed places.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src) {
        scatter_(t, dim, index, src);
        return Self();
      });
  def(kMethod, "scatter_", "input, dim, index, value", "Writes the value at the indexed places.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Scalar& value) {
        scatter_(t, dim, index, Operand(value));
        return Self();
      });
  def(kBoth, "scatter_add", "input, dim, index, src, *, out=None", "A copy to which src is added at the indexed places.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& src) { return scatter_add(t, dim, index, src); });
  def(kMethod, "scatter_add_", "input, dim, index, src", "Adds src at the indexed places.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& src) {
        scatter_add_(t, dim, index, src);
        return Self();
      });
}

void define_index_writes() {
  def(kBoth, "index_select", "input, dim, index, *, out=None", "The places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index) { return index_select(t, dim, index); });
  def(kMethod, "index_add_", "input, dim, index, source, *, alpha=1", "Adds alpha * source at the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
        index_add_(t, dim, index, source, alpha);
        return Self();
      });
  def(kBoth, "index_add", "input, dim, index, source, *, alpha=1, out=None",
      "A copy with alpha * source added at the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
        return index_add(t, dim, index, source, alpha);
      });
  def(kMethod, "index_fill_", "input, dim, index, value", "Writes the value to the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
        index_fill_(t, dim, index, value);
        return Self();
      });
  def(kBoth, "index_fill", "input, dim, index, value", "A copy with the value at the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) { return index_fill(t, dim, index, value); });
  def(kMethod, "index_copy_", "input, dim, index, source", "Writes source to the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
        index_copy_(t, dim, index, source);
        return Self();
      });
  def(kBoth, "index_copy", "input, dim, index, source, *, out=None", "A copy with source at the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) { return index_copy(t, dim, index, source); });
}

void define_puts() {
  def(kMethod, "index_put_", "input, indices, values, accumulate=False", "input[indices] = values, or += with accumulate.",
      [](const Tensor& t, PyObject* indices, const Operand& value, bool accumulate) {
        Tensor(t).index_put_(places_from(indices), value, accumulate);
        return Self();
      });
  def(kBoth, "index_put", "input, indices, values, accumulate=False", "A copy with input[indices] = values.",
      [](const Tensor& t, PyObject* indices, const Operand& value, bool accumulate) {
        return index_put(t, places_from(indices), value, accumulate);
      });
  def(kBoth, "take", "input, index, *, out=None", "Elements by their place in the flattened input.",
      [](const Tensor& t, const Tensor& index) { return take(t, index); });
}

void define_masks() {
  def(kBoth, "masked_select", "input, mask, *, out=None", "The elements where mask is true, as a vector.",
      [](const Tensor& t, const Tensor& mask) { return masked_select(t, mask); });
  def(kBoth, "masked_fill", "input, mask, value", "A copy with the value where mask is true.",
      [](const Tensor& t, const Tensor& mask, const Operand& value) { return masked_fill(t, mask, value); });
  def(kMethod, "masked_fill_", "input, mask, value", "Writes the value where mask is true.",
      [](const Tensor& t, const Tensor& mask, const Operand& value) {
        masked_fill_(t, mask, value);
        return Self();
      });
  def(kMethod, "masked_scatter_", "input, mask, source", "Writes the elements of source, in order, where mask is true.",
      [](const Tensor& t, const Tensor& mask, const Tensor& source) {
        masked_scatter_(t, mask, source);
        return Self();
      });
  def(kBoth, "nonzero", "input, *, as_tuple=False, out=None",
      "(n, rank): the positions of elements that are not 0; as_tuple: one tensor for each dimension.",
      [](const Tensor& t, bool as_tuple) -> PyObject* {
        if (!as_tuple) return wrap(nonzero(t));
        return to_python(nonzero_numpy(t));
      });
  def(kBoth, "argwhere", "input", "(n, rank): the positions of elements that are not 0.", [](const Tensor& t) { return nonzero(t); });
}

void define_orders() {
  def(kBoth, "sort", "input, dim=-1, descending=False, stable=False, *, out=None",
      "Sorted along a dimension, equal elements in their order: (values, indices).",
      [](const Tensor& t, int64_t dim, bool descending, Ignored) { return named("sort", sort(t, dim, descending)); });
  def(kBoth, "sort", "input, *, stable, dim=-1, descending=False, out=None", "Sorted along a dimension: (values, indices).",
      [](const Tensor& t, Ignored, int64_t dim, bool descending) { return named("sort", sort(t, dim, descending)); });
  def(kBoth, "msort", "input, *, out=None", "Sorted along the first dimension.", [](const Tensor& t) { return sort(t, 0).first; });
  def(kBoth, "argsort", "input, dim=-1, descending=False, stable=False, *, out=None", "The places that sort along a dimension.",
      [](const Tensor& t, int64_t dim, bool descending, Ignored) { return argsort(t, dim, descending); });
  def(kBoth, "topk", "input, k, dim=-1, largest=True, sorted=True, *, out=None",
      "The k greatest (least) elements along a dimension: (values, indices).",
      [](const Tensor& t, int64_t k, int64_t dim, bool largest, bool sorted) { return named("topk", topk(t, k, dim, largest, sorted)); });
  def(kBoth, "kthvalue", "input, k, dim=-1, keepdim=False, *, out=None", "The k-th least elements along a dimension: (values, indices).",
      [](const Tensor& t, int64_t k, int64_t dim, bool keepdim) { return named("kthvalue", kthvalue(t, k, dim, keepdim)); });
  def(kBoth, "unique", "input, sorted=True, return_inverse=False, return_counts=False, dim=None",
      "The distinct elements in order; with return_inverse and return_counts a tuple of them, each element's place, "
      "and their counts.",
      [](const Tensor& t, Ignored, bool inverse, bool counts, OptInt dim) -> PyObject* {
        auto [values, places, numbers] = dim ? unique(t, *dim) : unique(t);
        if (!inverse && !counts) return wrap(values);
        std::vector<Tensor> parts{values};
        if (inverse) parts.push_back(places);
        if (counts) parts.push_back(numbers);
        return to_python(parts);
      });
  def(kBoth, "bincount", "input, weights=None, minlength=0", "How often each number occurs, or the sums of its weights.",
      [](const Tensor& t, const std::optional<Tensor>& weights, int64_t minlength) {
        return weights ? bincount(t, *weights, minlength) : bincount(t, minlength);
      });
}

}  // namespace

void define_indexing() {
  define_gathers();
  define_index_writes();
  define_puts();
  define_masks();
  define_orders();
}

}  // namespace naru::py
