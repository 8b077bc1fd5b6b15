// Gathering, scattering, masks, sorting.
#include <algorithm>
#include <numeric>

#include "tensor_object.h"

namespace naru::py {
namespace {

using OptInt = std::optional<int64_t>;

Named named(const char* name, std::pair<Tensor, Tensor> pair) { return {name, pair.first, pair.second}; }

// Numbers of slices in the order of their elements, and where one differs from that before it. By the host.
template <class T>
std::pair<std::vector<int64_t>, std::vector<bool>> slices_in_order(const std::vector<T>& elements, int64_t count) {
  const auto width = count ? static_cast<std::ptrdiff_t>(elements.size()) / count : 0;
  const auto begin = [&](int64_t i) { return elements.begin() + i * width; };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(begin(a), begin(a) + width, begin(b), begin(b) + width);
  });
  std::vector<bool> differs(order.size(), true);
  for (size_t i = 1; i < order.size(); ++i) differs[i] = !std::equal(begin(order[i]), begin(order[i]) + width, begin(order[i - 1]));
  return {order, differs};
}

// The distinct slices along a dimension, sorted; each slice's place among them; how often each occurs.
std::tuple<Tensor, Tensor, Tensor> unique_slices(const Tensor& t, int64_t dim) {
  const int64_t count = t.size(dim);
  if (t.numel() == 0 && count != 0)
    throw RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied (shape {}, dim {})",
                       t.sizes().str(), dim);
  const Tensor rows = t.detach().movedim(dim, 0).reshape({count, t.numel() ? -1 : 0});
  const auto [order, differs] = is_floating(t.dtype()) ? slices_in_order(rows.to_doubles(), count) : slices_in_order(rows.to_ints(), count);
  std::vector<int64_t> firsts, places(order.size()), counts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (differs[i]) firsts.push_back(order[i]), counts.push_back(0);
    places[static_cast<size_t>(order[i])] = static_cast<int64_t>(firsts.size()) - 1;
    ++counts.back();
  }
  const auto list = [&](const std::vector<int64_t>& v) { return tensor(v, Options(DType::I64, t.device())); };
  return {index_select(t, dim, list(firsts)), list(places), list(counts)};
}

// Written through each other's elements, which PyTorch still takes of a tensor that was expanded. Returns what to write to.
Tensor unexpanded(const Tensor& t, const char* op) {
  Tensor target = t;
  bool repeats = false;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1 && t.strides()[static_cast<size_t>(d)] == 0) repeats = true, target = target.narrow(d, 0, 1);
  if (repeats)
    warn_user(
        fmt::format("Use of {} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
                    "This also applies to advanced indexing e.g. tensor[indices] = tensor",
                    op));
  return target;
}

// An assignment to the places `index` of a dimension, behind as many full slices as there are dimensions before it.
void assign_places(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  const Tensor vector = index.dim() == 0 ? index.reshape({1}) : index;
  if (t.dim() == 0) {
    Tensor whole = t.view({1});
    const std::vector<Index> place{Index(vector)};
    whole.index_put_(place, value);
    return;
  }
  std::vector<Index> parts(static_cast<size_t>(dim), Index(Slice()));
  parts.push_back(Index(vector));
  Tensor target = t;
  target.index_put_(parts, value);
}

// masked_fill_ and what is made of it. Of an expanded tensor an element is written if it is to be at any of its places.
void fill_masked(const Tensor& t, const Tensor& mask, const Operand& value, const char* op) {
  if (value.is_tensor() && value.tensor().dim() > 0)
    throw RuntimeError("{} only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).", op, value.tensor().dim());
  const Tensor target = unexpanded(t, op);
  Tensor where = mask;
  if (!(target.sizes() == t.sizes())) where = broadcast_to(mask, t.sizes());
  for (int64_t d = 0; d < t.dim(); ++d)
    if (target.size(d) != t.size(d)) where = any(where, Dims{d}, true);
  masked_fill_(target, where, value);
}

void copy_to_places(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
  dim = wrap_dim(dim, t.dim());
  if (index.dim() > 1) throw IndexError("index_copy_(): Index should have dimension 1 or 0 (got {})", index.dim());
  if (index.dtype() != DType::I64)
    throw RuntimeError("index_copy_(): Expected a long tensor for index, but got {}", name_of(index.dtype()));
  if (t.dtype() != source.dtype())
    throw RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
                       name_of(t.dtype()), name_of(source.dtype()));
  if (source.dim() == 0 && index.numel() != 1)
    throw IndexError("index_copy_(): When source is scalar, index should have one element (got {})", index.numel());
  if (source.dim() != t.dim() && source.dim() > 0 && t.dim() > 0)
    throw IndexError(
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({}), "
        "destination "
        "dimensionality ({})",
        source.dim(), t.dim());
  const auto slice_of = [dim](const Tensor& x) {
    Dims sizes = x.sizes();
    if (!sizes.empty()) sizes.erase(static_cast<size_t>(std::min<int64_t>(dim, x.dim() - 1)));
    return sizes;
  };
  if (!(slice_of(t) == slice_of(source)) && source.dim() > 0)
    throw RuntimeError(
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} and source slice shape: {}",
        slice_of(t).str(), slice_of(source).str());
  if (source.dim() > 0 && index.numel() != source.size(std::min<int64_t>(dim, source.dim() - 1)))
    throw IndexError("index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})", index.numel(),
                     source.size(std::min<int64_t>(dim, source.dim() - 1)));
  const int64_t n = t.dim() == 0 ? 1 : t.size(dim);
  // On the cpu a negative place is found here; elsewhere, like any other bad one, by whoever reads next.
  if (index.device().is_cpu())
    for (int64_t i : index.to_ints())
      if (i < 0 || i >= n) throw IndexError("index_copy_(): index {} is out of bounds for dimension {} with size {}", i, dim, n);
  assign_places(t, dim, index, source);
}

void define_gathers() {
  def(kBoth, "gather", "input, dim, index, *, sparse_grad=False, out=None", "out[i][j] = input[index[i][j]][j] for dim 0, and so on.",
      [](const Tensor& t, int64_t dim, const Tensor& index, Ignored) { return gather(t, dim, index); });
  def(kBoth, "take_along_dim", "input, indices, dim=None, *, out=None",
      "The same as gather; negative positions count from the end. Without dim, in the flattened input.",
      [](const Tensor& t, const Tensor& index, OptInt dim) {
        // All but the dimension itself broadcast.
        if (dim && t.dim() != index.dim())
          throw RuntimeError(
              "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and "
              "{} dimensions for indices",
              t.dim(), index.dim());
        const int64_t d = dim ? wrap_dim(*dim, t.dim()) : 0;
        const auto spread = [d](const Tensor& x, const Tensor& other) {
          Dims own = x.sizes(), shape = other.sizes();
          if (shape.empty()) return x;
          own[static_cast<size_t>(d)] = shape[static_cast<size_t>(d)] = 1;
          shape = broadcast_shapes(own, shape);
          shape[static_cast<size_t>(d)] = x.size(d);
          return x.expand(shape);
        };
        const Tensor source = dim ? spread(t, index) : t.reshape({-1});
        const Tensor flat = dim ? spread(index, t) : index.reshape({-1});
        // Here, unlike in gather, negative positions count from the end.
        return gather(source, d, where(flat < 0, flat + source.size(d), flat));
      });
  const auto reduced = [](const char* op, std::string_view reduce) {
    if (reduce == "add" || reduce == "sum") return true;
    throw NotImplementedError("{}: reduce '{}' is not supported yet; 'add' is", op, reduce);
  };
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
  def(kMethod, "scatter_", "input, dim, index, src, *, reduce", "Adds src at the indexed places (reduce='add').",
      [reduced](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
        reduced("scatter_", reduce);
        scatter_add_(t, dim, index, src.is_tensor() ? src.tensor() : full(index.sizes(), src.scalar(), Options(t.dtype(), t.device())));
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
        Tensor out = t.clone();
        index_add_(out, dim, index, source, alpha);
        return out;
      });
  // index_fill: a mask of the places, so that one that is named twice is written once, and counts once for the gradient.
  const auto places_of = [](const Tensor& t, int64_t dim, const Tensor& index) {
    if (index.dim() > 1) throw RuntimeError("Index has to be a vector/scalar (index_fill_: got shape {})", index.sizes().str());
    if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
      throw IndexError("index_fill_(): Expected dtype int32 or int64 for index. (got {})", name_of(index.dtype()));
    const int64_t d = wrap_dim(dim, t.dim());
    Tensor mask = zeros({t.dim() ? t.size(d) : 1}, Options(DType::Bool, t.device()));
    const std::vector<Index> parts{Index(index)};
    mask.index_put_(parts, Operand(true));
    Dims shape(static_cast<size_t>(t.dim()), 1);
    if (t.dim()) shape[static_cast<size_t>(d)] = t.size(d);
    return mask.view(shape);
  };
  def(kMethod, "index_fill_", "input, dim, index, value", "Writes the value to the places `index` of a dimension.",
      [places_of](const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
        fill_masked(t, places_of(t, dim, index), value, "index_fill_");
        return Self();
      });
  def(kBoth, "index_fill", "input, dim, index, value", "A copy with the value at the places `index` of a dimension.",
      [places_of](const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
        return masked_fill(t, places_of(t, dim, index), value);
      });
  def(kMethod, "index_copy_", "input, dim, index, source", "Writes source to the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
        copy_to_places(t, dim, index, source);
        return Self();
      });
  def(kBoth, "index_copy", "input, dim, index, source, *, out=None", "A copy with source at the places `index` of a dimension.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
        const Tensor out = t.clone();
        copy_to_places(out, dim, index, source);
        return out;
      });
}

void define_puts() {
  const auto put = [](const Tensor& t, PyObject* indices, const Operand& value, bool accumulate) {
    std::vector<Index> parts;
    if (!PyTuple_Check(indices) && !PyList_Check(indices))
      throw TypeError("index_put_(): argument 'indices' must be tuple of Tensors, not {}", Py_TYPE(indices)->tp_name);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(indices); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(indices, i);
      if (item == Py_None)
        parts.push_back(Index(Slice()));
      else if (is_tensor(item))
        parts.push_back(Index(tensor_of(item)));
      else
        throw TypeError("index_put_(): argument 'indices' must be tuple of Tensors, got {} at {}", Py_TYPE(item)->tp_name, i);
    }
    Tensor target = t;
    target.index_put_(parts, value, accumulate);
  };
  def(kMethod, "index_put_", "input, indices, values, accumulate=False", "input[indices] = values, or += with accumulate.",
      [put](const Tensor& t, PyObject* indices, const Operand& value, bool accumulate) {
        put(t, indices, value, accumulate);
        return Self();
      });
  def(kBoth, "index_put", "input, indices, values, accumulate=False", "A copy with input[indices] = values.",
      [put](const Tensor& t, PyObject* indices, const Operand& value, bool accumulate) {
        Tensor out = t.clone();
        put(out, indices, value, accumulate);
        return out;
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
        fill_masked(t, mask, value, "masked_fill_");
        return Self();
      });
  def(kMethod, "masked_scatter_", "input, mask, source", "Writes the elements of source, in order, where mask is true.",
      [](const Tensor& t, const Tensor& mask, const Tensor& source) {
        Tensor target = t;
        const Tensor full_mask = broadcast_to(mask, t.sizes());
        const int64_t n = sum(full_mask).item<int64_t>();
        if (source.numel() < n)
          throw RuntimeError(
              "masked_scatter: expected self and source to have same dtypes and source to have at least {} elements, "
              "got {}",
              n, source.numel());
        const std::vector<Index> parts{Index(full_mask)};
        target.index_put_(parts, source.reshape({-1}).narrow(0, 0, n));
        return Self();
      });
  def(kBoth, "nonzero", "input, *, as_tuple=False, out=None",
      "(n, rank): the positions of elements that are not 0; as_tuple: one tensor for each dimension.",
      [](const Tensor& t, bool as_tuple) -> PyObject* {
        if (!as_tuple) return wrap(nonzero(t));
        return to_python(unbind(nonzero(t.dim() ? t : t.unsqueeze(0)), 1));
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
      [](const Tensor& t, int64_t k, int64_t dim, bool keepdim) {
        auto [values, places] = sort(t, dim);
        if (t.dim() == 0 && k == 1) return named("kthvalue", {values, places});
        if (t.dim() == 0 || k < 1 || k > t.size(dim))
          throw RuntimeError("kthvalue(): selected number k out of range for dimension {}: {}", dim, k);
        Tensor v = values.select(dim, k - 1), p = places.select(dim, k - 1);
        if (keepdim) v = v.unsqueeze(dim), p = p.unsqueeze(dim);
        return named("kthvalue", {v, p});
      });
  def(kBoth, "unique", "input, sorted=True, return_inverse=False, return_counts=False, dim=None",
      "The distinct elements in order; with return_inverse and return_counts a tuple of them, each element's place, "
      "and their counts.",
      [](const Tensor& t, Ignored, bool inverse, bool counts, OptInt dim) -> PyObject* {
        auto [values, places, numbers] = dim && t.dim() > 0 ? unique_slices(t, wrap_dim(*dim, t.dim())) : unique(t);
        if (!inverse && !counts) return wrap(values);
        std::vector<Tensor> parts{values};
        if (inverse) parts.push_back(places);
        if (counts) parts.push_back(numbers);
        return to_python(parts);
      });
  def(kBoth, "bincount", "input, weights=None, minlength=0", "How often each number occurs, or the sums of its weights.",
      [](const Tensor& t, const std::optional<Tensor>& weights, int64_t minlength) {
        const Tensor counts = bincount(t, minlength);
        if (!weights) return counts;
        if (weights->dim() != 1 || weights->numel() != t.numel())
          throw RuntimeError("weights should be 1-d and have the same length as input (got shapes {} and {})", weights->sizes().str(),
                             t.sizes().str());
        const DType type = weights->dtype() == DType::F32 ? DType::F32 : DType::F64;
        Tensor out = zeros(counts.sizes(), Options(type, t.device()));
        index_add_(out, 0, t, weights->to(type));
        return out;
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
