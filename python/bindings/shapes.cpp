// Views, joining and splitting.
#include <algorithm>

#include "ops/common.h"
#include "ops/strides.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

using OptInt = std::optional<int64_t>;
using List = std::vector<Tensor>;

// Tensors given one by one, or as one list.
List gathered(PyObject* given, const char* op) {
  List list;
  if (is_tensor(given)) return {tensor_of(given)};
  if (!tensors_from(given, list)) throw TypeError("{}(): wanted Tensors or a list of them", op);
  return list;
}

// How many elements (i, j) of a matrix have j - i <= k.
__int128 elements_below(int64_t rows, int64_t columns, __int128 k) {
  const __int128 first = std::clamp<__int128>(-k, 0, rows);                   // the first row that has some
  const __int128 whole = std::clamp<__int128>(columns - k - 1, first, rows);  // the first that has all
  return (whole - first) * (first + whole + 2 * k + 1) / 2 + (rows - whole) * columns;
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
  def(kBoth, "adjoint", "input", "The last two dimensions exchanged.", [](const Tensor& t) { return t.transpose(-2, -1); });
  def(kBoth, "squeeze", "input", "Without the dimensions of size 1.", [](const Tensor& t) { return t.squeeze(); });
  def(kBoth, "squeeze", "input, dim", "Without the named dimensions, where they are of size 1.", [](const Tensor& t, const Dims& dims) {
    if (dims.size() == 1) return t.squeeze(dims[0]);
    std::vector<int64_t> order;
    for (int64_t d : dims) order.push_back(wrap_dim(d, t.dim()));
    std::sort(order.rbegin(), order.rend());
    Tensor out = t;
    for (int64_t d : order) out = out.squeeze(d);
    return out;
  });
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
  def(kBoth, "narrow", "input, dim, start, length", "`length` elements of a dimension, from `start` on.",
      [](const Tensor& t, int64_t dim, int64_t start, int64_t length) { return t.narrow(dim, start, length); });
  def(kBoth, "select", "input, dim, index", "One place of a dimension.",
      [](const Tensor& t, int64_t dim, int64_t i) { return t.select(dim, i); });
  def(kBoth, "diagonal", "input, offset=0, dim1=0, dim2=1", "The diagonal of two dimensions, as the last one.",
      [](const Tensor& t, int64_t offset, int64_t a, int64_t b) { return t.diagonal(offset, a, b); });
}

void define_diagonals() {
  def(kBoth, "diag", "input, diagonal=0, *, out=None", "The diagonal of a matrix, or a matrix with this diagonal.",
      [](const Tensor& t, int64_t k) {
        if (t.dim() == 2) return t.diagonal(k, 0, 1).clone();
        if (t.dim() != 1) throw RuntimeError("diag(): Supports 1D or 2D tensors. Got {}D", t.dim());
        if (k == INT64_MIN) throw RuntimeError("diag(): diagonal {} is out of range", k);
        const int64_t n = plus(t.numel(), std::abs(k));
        times(times(n, n), static_cast<int64_t>(t.element_size()));
        const Tensor line =
            mul(ones({n, 1}, Options(t.dtype(), t.device())), cat({zeros({std::max<int64_t>(k, 0)}, Options(t.dtype(), t.device())), t,
                                                                   zeros({std::max<int64_t>(-k, 0)}, Options(t.dtype(), t.device()))}));
        const Tensor rows = arange(0, n, 1, Options(t.device())).unsqueeze(1), columns = arange(0, n, 1, Options(t.device())).unsqueeze(0);
        return where(eq(columns, add(rows, Operand(k))), line, zeros({}, Options(t.dtype(), t.device())));
      });
  def(kMethod, "unfold", "input, dimension, size, step", "Windows of a dimension, as a new last one.",
      [](const Tensor& t, int64_t dim, int64_t size, int64_t step) { return t.unfold(dim, size, step); });
  def(kBoth, "as_strided", "input, size, stride, storage_offset=None", "A view by sizes, strides and offset in elements.",
      [](const Tensor& t, const Dims& size, const Dims& stride, OptInt offset) {
        return t.as_strided(size, stride, offset.value_or(t.storage_offset()));
      });
  for (const char* name : {"movedim", "moveaxis"}) {
    def(kBoth, name, "input, source, destination", "Dimensions moved to other places.",
        [](const Tensor& t, const Dims& from, const Dims& to) {
          if (from.size() != to.size())
            throw RuntimeError(
                "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims "
                "as destination ({} dims)",
                from.str(), to.str());
          const int64_t n = t.dim();
          if (n == 0) {
            for (int64_t d : from) wrap_dim(d, 0);
            for (int64_t d : to) wrap_dim(d, 0);
            return t.view(t.sizes());
          }
          std::vector<int64_t> order(static_cast<size_t>(n), -1);
          std::vector<bool> taken(static_cast<size_t>(n), false);
          for (size_t i = 0; i < from.size(); ++i) {
            const int64_t a = wrap_dim(from[i], n), b = wrap_dim(to[i], n);
            if (taken[static_cast<size_t>(a)] || order[static_cast<size_t>(b)] >= 0)
              throw RuntimeError("movedim: repeated dim in source or destination");
            order[static_cast<size_t>(b)] = a;
            taken[static_cast<size_t>(a)] = true;
          }
          int64_t next = 0;
          for (auto& d : order) {
            if (d >= 0) continue;
            while (taken[static_cast<size_t>(next)]) ++next;
            d = next++;
          }
          return t.permute(Dims(order));
        });
  }
}

// In-place forms of views: the tensor itself takes the geometry. Only where no history would be lost.
template <class F>
void def_geometry(const char* name, const char* params, F view) {
  def(kMethod, name, params, "In place.", view);
}
void take_geometry(const Tensor& t, const Tensor& view) {
  if (t.requires_grad())
    throw RuntimeError(
        "an in-place change of shape is not supported for a tensor that requires grad; use the form without "
        "underscore");
  ops::bump_version(t);  // backward of whoever has saved it would meet another shape
  t.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
}

// The elements of the storage stay where they are; what is added is 0.
void resize(const Tensor& t, const Dims& size, std::optional<MemoryFormat> format = {}) {
  for (int64_t n : size)
    if (n < 0) throw RuntimeError("numel: integer multiplication overflow (resize_: negative size in {})", size.str());
  if (t.requires_grad()) throw RuntimeError("cannot resize variables that require grad");
  if (size == t.sizes() && !format) return;
  const Dims strides = ops::format_strides(size, format.value_or(MemoryFormat::Contiguous));
  const int64_t n = plus(checked_product(size), t.storage_offset());
  Storage& old = *t.impl()->storage;
  const auto room = static_cast<int64_t>(old.bytes / t.element_size());
  const uint32_t version = old.version + 1;
  if (n > room) {
    if (!old.resizable) throw RuntimeError("Trying to resize storage that is not resizable");
    const Tensor larger = zeros({n}, Options(t.dtype(), t.device()));
    if (room > 0) larger.narrow(0, 0, room).copy_(t.detach().as_strided({room}, {1}, 0));
    ops::replace_storage(t, larger.impl()->storage);
  }
  // What backward has kept of it is no longer what it was.
  t.impl()->storage->version = version;
  t.impl()->set_geometry(size, strides, t.impl()->offset);
}

void define_in_place_views() {
  def_geometry("t_", "input", [](const Tensor& t) {
    take_geometry(t, t.t());
    return Self();
  });
  def_geometry("transpose_", "input, dim0, dim1", [](const Tensor& t, int64_t a, int64_t b) {
    take_geometry(t, t.transpose(a, b));
    return Self();
  });
  def_geometry("unsqueeze_", "input, dim", [](const Tensor& t, int64_t dim) {
    take_geometry(t, t.unsqueeze(dim));
    return Self();
  });
  def_geometry("squeeze_", "input", [](const Tensor& t) {
    take_geometry(t, t.squeeze());
    return Self();
  });
  def_geometry("squeeze_", "input, dim", [](const Tensor& t, int64_t dim) {
    take_geometry(t, t.squeeze(dim));
    return Self();
  });
  def_geometry("resize_", "input, *size, memory_format=None", [](const Tensor& t, const Dims& size, std::optional<MemoryFormat> format) {
    resize(t, size, format);
    return Self();
  });
  def_geometry("as_strided_", "input, size, stride, storage_offset=None",
               [](const Tensor& t, const Dims& size, const Dims& stride, OptInt offset) {
                 take_geometry(t, t.as_strided(size, stride, offset.value_or(t.storage_offset())));
                 return Self();
               });
  def_geometry("resize_as_", "input, the_template, *, memory_format=None", [](const Tensor& t, const Tensor& model, Ignored) {
    resize(t, model.sizes());
    return Self();
  });
}

// Pieces that end at the given places.
List split_at(const Tensor& t, const Dims& ends, int64_t dim) {
  List pieces;
  int64_t start = 0;
  const auto clamped = [n = t.size(dim)](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  for (int64_t end : ends) {
    pieces.push_back(t.slice(dim, start, std::max(start, clamped(end))));
    start = clamped(end);
  }
  pieces.push_back(t.slice(dim, start, t.size(dim)));
  return pieces;
}

void define_joins() {
  for (const char* name : {"cat", "concat", "concatenate"})
    def(kFunction, name, "tensors, dim=0, *, out=None", "Tensors one behind the other along a dimension; their other sizes must agree.",
        [](const List& tensors, int64_t dim) { return cat(tensors, dim); });
  def(kFunction, "stack", "tensors, dim=0, *, out=None", "Tensors of one shape side by side along a new dimension.",
      [](const List& tensors, int64_t dim) { return stack(tensors, dim); });
  def(kFunction, "hstack", "tensors, *, out=None", "Tensors side by side: along dimension 1, vectors along 0.", [](const List& tensors) {
    List parts;
    for (const Tensor& t : tensors) parts.push_back(t.dim() == 0 ? t.reshape({1}) : t);
    return cat(parts, !parts.empty() && parts[0].dim() > 1 ? 1 : 0);
  });
  def(kFunction, "vstack", "tensors, *, out=None", "Tensors above each other; vectors count as rows.", [](const List& tensors) {
    List rows;
    for (const Tensor& t : tensors) rows.push_back(t.dim() < 2 ? t.reshape({1, -1}) : t);
    return cat(rows, 0);
  });
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
  def(kBoth, "tensor_split", "input, indices_or_sections, dim=0",
      "That many pieces, the first ones larger by one where it does not divide.", [](const Tensor& t, int64_t sections, int64_t dim) {
        if (sections <= 0) throw RuntimeError("number of sections must be larger than 0, got {}", sections);
        const int64_t n = t.size(dim);
        constexpr int64_t kMost = int64_t{1} << 28;
        if (sections > kMost) throw RuntimeError("tensor_split: {} pieces are more than fit into memory (at most {})", sections, kMost);
        Dims sizes;
        for (int64_t i = 0; i < sections; ++i) sizes.push_back(n / sections + (i < n % sections));
        return split(t, sizes, dim);
      });
  def(kBoth, "tensor_split", "input, indices_or_sections, dim=0", "Pieces that end at the given places.",
      [](const Tensor& t, const Sequence& ends, int64_t dim) { return split_at(t, ends.dims, dim); });
  def(kBoth, "tensor_split", "input, tensor_indices_or_sections, dim=0", "Pieces that end at the places in a vector.",
      [](const Tensor& t, const Tensor& ends, int64_t dim) {
        if (ends.dim() != 1 || ends.dtype() != DType::I64 || !ends.device().is_cpu())
          throw RuntimeError(
              "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor of int64 on cpu, "
              "but got a tensor with {} dims of {} on {}",
              ends.dim(), name_of(ends.dtype()), ends.device().str());
        return split_at(t, Dims(ends.to_ints()), dim);
      });
  def(kBoth, "chunk", "input, chunks, dim=0", "Up to that many pieces of equal size along a dimension.",
      [](const Tensor& t, int64_t count, int64_t dim) { return chunk(t, count, dim); });
  def(kBoth, "unbind", "input, dim=0", "The places of a dimension, one tensor each.",
      [](const Tensor& t, int64_t dim) { return unbind(t, dim); });
  def(kMethod, "repeat", "input, *repeats", "Copies one behind the other, that many along each dimension.",
      [](const Tensor& t, const Dims& times) { return repeat(t, times); });
  def(kBoth, "tile", "input, *dims", "Copies one behind the other; missing leading counts are 1.", [](const Tensor& t, const Dims& dims) {
    Dims times = dims;
    while (static_cast<int64_t>(times.size()) < t.dim()) times.insert(0, 1);
    return repeat(t, times);
  });
  def(kBoth, "repeat_interleave", "input, repeats, dim=None, *, output_size=None", "Each element that many times in a row.",
      [](const Tensor& t, PyObject* repeats, OptInt dim, Ignored) -> PyObject* {
        const Tensor x = dim && t.dim() > 0 ? t : t.reshape({-1});
        const int64_t d = wrap_dim(dim.value_or(0), x.dim()), n = x.size(d);
        int64_t times = 0;
        Tensor index;
        if (is_tensor(repeats)) {
          const Tensor& r = tensor_of(repeats);
          if (r.dim() > 1) throw RuntimeError("repeat_interleave only accept 1D vector as repeat, got {} dimensions", r.dim());
          if (r.dtype() != DType::I64 && r.dtype() != DType::I32)
            throw RuntimeError("repeats has to be Long or Int tensor, got {}", name_of(r.dtype()));
          for (const int64_t count : r.to_ints())
            if (count < 0) throw RuntimeError("repeats can not be negative (repeat_interleave: got {})", count);
        }
        if (is_tensor(repeats) && tensor_of(repeats).numel() != 1) {
          const auto counts = tensor_of(repeats).to_ints();
          if (static_cast<int64_t>(counts.size()) != n)
            throw RuntimeError("repeat_interleave: repeats must have the same size as input along dim, got {} and {}", counts.size(), n);
          std::vector<int64_t> places;
          for (int64_t i = 0; i < n; ++i) places.insert(places.end(), static_cast<size_t>(counts[static_cast<size_t>(i)]), i);
          index = tensor(places, Options(DType::I64, x.device()));
        } else {
          if (!int_from(repeats, times))
            throw TypeError("repeat_interleave(): argument 'repeats' must be int or Tensor, not {}", Py_TYPE(repeats)->tp_name);
          if (times < 0) throw RuntimeError("repeats has to be non-negative, got {}", times);
          index = floor_divide(arange(0, naru::times(n, times), 1, Options(x.device())), Operand(std::max<int64_t>(times, 1)));
        }
        return wrap(index_select(x, d, index));
      });
  def(kFunction, "repeat_interleave", "repeats, *, output_size=None", "Each position that many times in a row.",
      [](const Tensor& counts, Ignored) {
        if (counts.dim() != 1) throw RuntimeError("repeat_interleave only accept 1D vector as repeat, got {} dimensions", counts.dim());
        if (counts.dtype() != DType::I64 && counts.dtype() != DType::I32)
          throw RuntimeError("repeats has to be Long or Int tensor, got {}", name_of(counts.dtype()));
        std::vector<int64_t> places;
        const auto numbers = counts.to_ints();
        for (size_t i = 0; i < numbers.size(); ++i) {
          if (numbers[i] < 0) throw RuntimeError("repeats can not be negative (repeat_interleave: got {})", numbers[i]);
          places.insert(places.end(), static_cast<size_t>(numbers[i]), static_cast<int64_t>(i));
        }
        return tensor(places, Options(counts.dtype(), counts.device()));
      });
}

void define_flips() {
  def(kBoth, "flip", "input, *dims", "Dimensions in reverse order.", [](const Tensor& t, const Dims& dims) { return flip(t, dims); });
  def(kBoth, "fliplr", "input", "Dimension 1 in reverse order.", [](const Tensor& t) { return flip(t, {1}); });
  def(kBoth, "flipud", "input", "Dimension 0 in reverse order.", [](const Tensor& t) { return flip(t, {0}); });
  def(kBoth, "roll", "input, shifts, dims=()", "Elements moved on along dimensions, round the end.",
      [](const Tensor& t, const Dims& shifts, const std::optional<Dims>& dims) { return roll(t, shifts, dims.value_or(Dims())); });
  def(kBoth, "rot90", "input, k=1, dims=None", "Turned by 90 degrees k times, from the first towards the second dimension.",
      [](const Tensor& t, int64_t k, const std::optional<Dims>& given) {
        const Dims dims = given.value_or(Dims{0, 1});
        if (dims.size() != 2) throw RuntimeError("expected total rotation dims == 2, but got dims = {}", dims.size());
        switch (((k % 4) + 4) % 4) {
          case 1:
            return flip(t, {dims[1]}).transpose(dims[0], dims[1]);
          case 2:
            return flip(t, dims);
          case 3:
            return flip(t, {dims[0]}).transpose(dims[0], dims[1]);
          default:
            return t.clone();
        }
      });
  def(kBoth, "tril", "input, diagonal=0, *, out=None", "The lower triangle of matrices, 0 above.",
      [](const Tensor& t, int64_t k) { return tril(t, k); });
  def(kBoth, "triu", "input, diagonal=0, *, out=None", "The upper triangle of matrices, 0 below.",
      [](const Tensor& t, int64_t k) { return triu(t, k); });
  for (const bool lower : {true, false})
    def(kFunction, lower ? "tril_indices" : "triu_indices", "row, col, offset=0, *, dtype=None, device=None",
        "(2, n): rows and columns of a triangle's elements.",
        [lower](int64_t rows, int64_t columns, int64_t k, std::optional<DType> dtype, std::optional<Device> device) {
          if (rows < 0) throw RuntimeError("row must be non-negative, got{}", rows);
          if (columns < 0) throw RuntimeError("col must be non-negative, got{}", columns);
          const __int128 below = elements_below(rows, columns, lower ? k : static_cast<__int128>(k) - 1);
          const __int128 count = lower ? below : static_cast<__int128>(rows) * columns - below;
          if (count > INT64_MAX / 16)
            throw RuntimeError("{}: {} x {} elements are too many for any memory", lower ? "tril_indices" : "triu_indices", rows, columns);
          const Tensor places = empty({2, static_cast<int64_t>(count)}, Options(DType::I64, Device(DeviceType::Cpu)));
          auto* row = count ? places.data<int64_t>() : nullptr;
          auto* column = row + static_cast<int64_t>(count);
          for (int64_t i = 0, n = 0; n < count; ++i) {
            const auto diagonal = static_cast<__int128>(i) + k;
            const auto begin = static_cast<int64_t>(lower ? 0 : std::clamp<__int128>(diagonal, 0, columns));
            const auto end = static_cast<int64_t>(lower ? std::clamp<__int128>(diagonal + 1, 0, columns) : columns);
            if (lower && end == 0) i = std::max<int64_t>(i, -k - 1);  // the rows without elements
            for (int64_t j = begin; j < end; ++j, ++n) row[n] = i, column[n] = j;
          }
          return places.to(device, dtype.value_or(DType::I64), false, false);
        });
  def(kBoth, "trace", "input", "The sum of a matrix's diagonal.", [](const Tensor& t) { return sum(t.diagonal(0, 0, 1)); });
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
