// Views, joining and splitting.
#include "naru/ops/aliases.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using List = std::vector<Tensor>;

// Tensors given as separate arguments or as one list.
List gathered(PyObject* given, const char* op) {
  List list;
  if (is_tensor(given)) return {tensor_of(given)};
  if (!tensors_from(given, list)) throw TypeError("{}(): wanted Tensors or a list of them", op);
  return list;
}

void define_views() {
  def(kMethod, "view", "input, dtype", "The same bytes as elements of another type.",
      [](const Tensor& t, DType type) { return t.view(type); });
  def(kMethod, "view", "input, *size",
      "The same elements in another shape; -1 stands for what is left. RuntimeError where that needs a copy.",
      [](const Tensor& t, const Dims& size) { return t.view(size); });
  def(kMethod, "view_as", "input, other", "A view of other's shape.", [](const Tensor& t, const Tensor& o) { return t.view(o.sizes()); });
  def(kBoth, "reshape", "input, *shape", "The same elements in another shape: a view where possible, else a copy.",
      [](const Tensor& t, const Dims& shape) { return t.reshape(shape); });
  def(kMethod, "reshape_as", "input, other", "The same elements in other's shape.",
      [](const Tensor& t, const Tensor& o) { return t.reshape(o.sizes()); });
  def(kBoth, "permute", "input, *dims", "The dimensions in another order.",
      [](const Tensor& t, const Dims& dims) { return t.permute(dims); });
  for (const char* name : {"transpose", "swapaxes", "swapdims"})
    def(kBoth, name, name[4] == 'a' ? "input, axis0, axis1" : "input, dim0, dim1", "Two dimensions exchanged.",
        [](const Tensor& t, int64_t a, int64_t b) { return t.transpose(a, b); });
  def(kBoth, "t", "input", "The transpose of a matrix.", [](const Tensor& t) { return t.t(); });
  def(kBoth, "adjoint", "input", "The last two dimensions exchanged, and the elements conjugated.", [](const Tensor& t) {
    if (t.dim() == 1) throw RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
    return mH(t);
  });
  def(kBoth, "squeeze", "input", "Without the dimensions of size 1.", [](const Tensor& t) { return t.squeeze(); });
  def(kBoth, "squeeze", "input, dim", "Without the named dimensions, where they are of size 1.",
      [](const Tensor& t, const Dims& dims) { return squeeze(t, dims); });
  def(kBoth, "unsqueeze", "input, dim", "With a dimension of size 1 inserted.",
      [](const Tensor& t, int64_t dim) { return t.unsqueeze(dim); });
  def(kMethod, "expand", "input, *size, implicit=False", "Repeated along dimensions of size 1, without a copy; -1 keeps a size.",
      [](const Tensor& t, const Dims& size, Ignored) { return t.expand(size); });
  def(kMethod, "expand_as", "input, other", "Expanded to other's shape.",
      [](const Tensor& t, const Tensor& o) { return t.expand(o.sizes()); });
  def(kBoth, "broadcast_to", "input, *size", "Repeated to a shape, without a copy.",
      [](const Tensor& t, const Dims& size) { return t.expand(size); });
  def(kBoth, "flatten", "input, start_dim=0, end_dim=-1", "Dimensions from start_dim to end_dim as one.",
      [](const Tensor& t, int64_t a, int64_t b) { return t.flatten(a, b); });
  def(kBoth, "ravel", "input", "All dimensions as one.", [](const Tensor& t) { return t.reshape({-1}); });
  def(kBoth, "unflatten", "input, dim, sizes", "A dimension split into several.",
      [](const Tensor& t, int64_t dim, const Dims& sizes) { return t.unflatten(dim, sizes); });
  def(kBoth, "narrow", "input, dim, start, length", "`start` may be a tensor without dimensions.",
      [](const Tensor& t, int64_t dim, const Tensor& start, int64_t length) {
        if (start.dim() != 0 || !is_integral(start.dtype()))
          throw RuntimeError("start must be an 0-dim integral Tensor. (narrow: got shape {}, {})", start.sizes().str(),
                             name_of(start.dtype()));
        return t.narrow(dim, start.item<int64_t>(), length);
      });
  def(kBoth, "narrow", "input, dim, start, length", "`length` elements of a dimension, from `start` on.",
      [](const Tensor& t, int64_t dim, int64_t start, int64_t length) { return t.narrow(dim, start, length); });
  def(kBoth, "select", "input, dim, index", "One place of a dimension.",
      [](const Tensor& t, int64_t dim, int64_t i) { return t.select(dim, i); });
  def(kBoth, "diagonal", "input, offset=0, dim1=0, dim2=1", "The diagonal of two dimensions, as the last one.",
      [](const Tensor& t, int64_t offset, int64_t a, int64_t b) { return t.diagonal(offset, a, b); });
}

void define_diagonals() {
  def(kBoth, "diag", "input, diagonal=0, *, out=None", "The diagonal of a matrix, or a matrix with this diagonal.",
      [](const Tensor& t, int64_t k) { return diag(t, k); });
  def(kMethod, "unfold", "input, dimension, size, step", "Windows of a dimension, as a new last one.",
      [](const Tensor& t, int64_t dim, int64_t size, int64_t step) { return t.unfold(dim, size, step); });
  def(kBoth, "as_strided", "input, size, stride, storage_offset=None", "A view by sizes, strides and offset in elements.",
      [](const Tensor& t, const Dims& size, const Dims& stride, OptInt offset) {
        return t.as_strided(size, stride, offset.value_or(t.storage_offset()));
      });
  for (const char* name : {"movedim", "moveaxis"}) {
    def(kBoth, name, "input, source, destination", "Dimensions moved to other places.",
        [](const Tensor& t, const Dims& from, const Dims& to) { return movedim(t, from, to); });
  }
}

// In-place forms of views, which change the tensor's own geometry. Refused if history would be lost.
template <class F>
void def_geometry(const char* name, const char* params, F view) {
  def(kMethod, name, params, "In place.", view);
}
void define_in_place_views() {
  def_geometry("t_", "input", [](const Tensor& t) {
    t_(t);
    return Self();
  });
  def_geometry("transpose_", "input, dim0, dim1", [](const Tensor& t, int64_t a, int64_t b) {
    transpose_(t, a, b);
    return Self();
  });
  def_geometry("unsqueeze_", "input, dim", [](const Tensor& t, int64_t dim) {
    unsqueeze_(t, dim);
    return Self();
  });
  def_geometry("squeeze_", "input", [](const Tensor& t) {
    squeeze_(t);
    return Self();
  });
  def_geometry("squeeze_", "input, dim", [](const Tensor& t, const Dims& dims) {
    std::vector<int64_t> wanted;
    for (const int64_t d : dims) wanted.push_back(wrap_dim(d, t.dim()));
    std::sort(wanted.rbegin(), wanted.rend());  // from the last, so that the others keep their indices
    for (const int64_t d : wanted) squeeze_(t, d);
    return Self();
  });
  def_geometry("resize_", "input, *size, memory_format=None", [](const Tensor& t, const Dims& size, std::optional<MemoryFormat> format) {
    resize_(t, size, format);
    return Self();
  });
  def_geometry("as_strided_", "input, size, stride, storage_offset=None",
               [](const Tensor& t, const Dims& size, const Dims& stride, OptInt offset) {
                 as_strided_(t, size, stride, offset.value_or(t.storage_offset()));
                 return Self();
               });
  def_geometry("resize_as_", "input, the_template, *, memory_format=None",
               [](const Tensor& t, const Tensor& model, std::optional<MemoryFormat> format) {
                 resize_as_(t, model, format);
                 return Self();
               });
}

void define_joins() {
  for (const char* name : {"cat", "concat", "concatenate"})
    def(kFunction, name, "tensors, dim=0, *, out=None", "Tensors one behind the other along a dimension; their other sizes must agree.",
        [](const List& tensors, int64_t dim) { return cat(tensors, dim); });
  def(kFunction, "stack", "tensors, dim=0, *, out=None", "Tensors of one shape side by side along a new dimension.",
      [](const List& tensors, int64_t dim) { return stack(tensors, dim); });
  const auto join = [](const char* name, const char* doc, auto f) {
    def(kFunction, name, "tensors, *, out=None", doc, [f](const List& tensors) { return f(tensors); });
  };
  join("hstack", "Tensors side by side: along dimension 1, vectors along 0.", &hstack);
  join("vstack", "Tensors above each other; vectors count as rows.", &vstack);
  join("dstack", "Tensors behind each other, along dimension 2.", &dstack);
  join("column_stack", "Tensors side by side; vectors count as columns.", &column_stack);
  add_alias("row_stack", "vstack");
  for (const char* name : {"split", "split_with_sizes"}) {
    def(kBoth, name, "input, split_size, dim=0", "Pieces of a size along a dimension; the last one may be smaller.",
        [](const Tensor& t, int64_t size, int64_t dim) { return split(t, size, dim); });
    def(kBoth, name, "input, split_size, dim=0", "Pieces of the given sizes along a dimension.",
        [](const Tensor& t, const Sequence& sizes, int64_t dim) { return split(t, sizes.dims, dim); });
    def(kBoth, name, "input, split_sizes, dim=0", "Pieces of the given sizes along a dimension.",
        [](const Tensor& t, const Sequence& sizes, int64_t dim) { return split(t, sizes.dims, dim); });
  }
}

void define_pieces() {
  // Must be defined first: otherwise a one-element vector would be parsed as a number of sections.
  def(kBoth, "tensor_split", "input, tensor_indices_or_sections, dim=0", "Pieces that end at the places in a vector.",
      [](const Tensor& t, const Tensor& ends, int64_t dim) { return tensor_split(t, ends, dim); });
  def(kBoth, "tensor_split", "input, indices_or_sections, dim=0",
      "That many pieces, the first ones larger by one where it does not divide.",
      [](const Tensor& t, int64_t sections, int64_t dim) { return tensor_split(t, sections, dim); });
  def(kBoth, "tensor_split", "input, indices_or_sections, dim=0", "Pieces that end at the given places.",
      [](const Tensor& t, const Sequence& ends, int64_t dim) { return tensor_split(t, ends.dims, dim); });
  def(kBoth, "chunk", "input, chunks, dim=0", "Up to that many pieces of equal size along a dimension.",
      [](const Tensor& t, int64_t count, int64_t dim) { return chunk(t, count, dim); });
  def(kBoth, "unbind", "input, dim=0", "The places of a dimension, one tensor each.",
      [](const Tensor& t, int64_t dim) { return unbind(t, dim); });
  def(kMethod, "repeat", "input, *repeats", "Copies one behind the other, that many along each dimension.",
      [](const Tensor& t, const Dims& times) { return repeat(t, times); });
  def(kBoth, "tile", "input, *dims", "Copies one behind the other; missing leading counts are 1.",
      [](const Tensor& t, const Dims& dims) { return tile(t, dims); });
  def(kBoth, "repeat_interleave", "input, repeats, dim=None, *, output_size=None", "Each element that many times in a row.",
      [](const Tensor& t, PyObject* repeats, OptInt dim, OptInt size) -> PyObject* {
        if (is_tensor(repeats)) return wrap(repeat_interleave(t, tensor_of(repeats), dim, size));
        int64_t times = 0;
        if (!int_from(repeats, times))
          throw TypeError("repeat_interleave(): argument 'repeats' must be int or Tensor, not {}", Py_TYPE(repeats)->tp_name);
        return wrap(repeat_interleave(t, times, dim, size));
      });
  def(kFunction, "repeat_interleave", "repeats, *, output_size=None", "Each position that many times in a row.",
      [](const Tensor& repeats, OptInt size) { return repeat_interleave(repeats, size); });
}

void define_flips() {
  def(kBoth, "flip", "input, *dims", "Dimensions in reverse order.", [](const Tensor& t, const Dims& dims) { return flip(t, dims); });
  def(kBoth, "fliplr", "input", "Dimension 1 in reverse order.", [](const Tensor& t) { return fliplr(t); });
  def(kBoth, "flipud", "input", "Dimension 0 in reverse order.", [](const Tensor& t) { return flipud(t); });
  def(kBoth, "roll", "input, shifts, dims=()", "Elements moved on along dimensions, round the end.",
      [](const Tensor& t, const Dims& shifts, const std::optional<Dims>& dims) { return roll(t, shifts, dims.value_or(Dims())); });
  def(kBoth, "rot90", "input, k=1, dims=None", "Turned by 90 degrees k times, from the first towards the second dimension.",
      [](const Tensor& t, int64_t k, const std::optional<Dims>& given) {
        return rot90(t, k, given.value_or(Dims{0, 1}));
      });
  def(kBoth, "tril", "input, diagonal=0, *, out=None", "The lower triangle of matrices, 0 above.",
      [](const Tensor& t, int64_t k) { return tril(t, k); });
  def(kBoth, "triu", "input, diagonal=0, *, out=None", "The upper triangle of matrices, 0 below.",
      [](const Tensor& t, int64_t k) { return triu(t, k); });
  for (const bool lower : {true, false})
    def(kFunction, lower ? "tril_indices" : "triu_indices", "row, col, offset=0, *, dtype=None, device=None",
        "(2, n): rows and columns of a triangle's elements.",
        [lower](int64_t rows, int64_t columns, int64_t k, std::optional<DType> dtype, std::optional<Device> device) {
          Options o;
          o.dtype = dtype, o.device = device;
          return lower ? tril_indices(rows, columns, k, o) : triu_indices(rows, columns, k, o);
        });
  def(kBoth, "trace", "input", "The sum of a matrix's diagonal.", [](const Tensor& t) { return trace(t); });
  def(kFunction, "broadcast_tensors", "*tensors", "The tensors, each repeated to the shape all broadcast to.",
      [](PyObject* given) -> PyObject* {
        const List list = gathered(given, "broadcast_tensors");
        return to_python(broadcast_tensors(list));
      });
  def(kFunction, "meshgrid", "*tensors=(), indexing=None", "Grids of coordinates from vectors of them.",
      [](PyObject* given, std::optional<std::string_view> order) -> PyObject* {
        const List list = gathered(given, "meshgrid");
        if (!order && !list.empty())
          check(PyErr_WarnEx(PyExc_UserWarning,
                             "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", 1));
        const std::string_view indexing = order.value_or("ij");
        if (indexing != "ij" && indexing != "xy")
          throw RuntimeError("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}", indexing);
        return to_python(meshgrid(list, indexing == "ij"));
      });
}

}  // namespace

void define_shapes() {
  define_views();
  define_diagonals();
  define_in_place_views();
  define_joins();
  define_pieces();
  define_flips();
}

}  // namespace naru::py
