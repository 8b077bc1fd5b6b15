// Views: new sizes and strides over the same storage.
#include <fmt/format.h>

#include <numeric>

#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/aliases.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using autograd::record;
using autograd::WithJvp;
using Grads = std::vector<Tensor>&;

// Strides of the same elements in another shape, or none if a copy is needed. One pass over both shapes from the end.
std::optional<Dims> strides_for(const Dims& sizes, const Dims& strides, const Dims& shape) {
  if (product(sizes) == 0) return contiguous_strides(shape);
  Dims out;
  out.resize(shape.size());
  int64_t view = static_cast<int64_t>(shape.size()) - 1;
  int64_t step = strides.empty() ? 1 : strides.back(), elements = 1, taken = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    elements *= sizes[d];
    if (d != 0 && (sizes[d - 1] == 1 || strides[d - 1] == elements * step)) continue;
    while (view >= 0 && (taken < elements || shape[view] == 1)) {
      out[view] = taken * step;
      taken *= shape[view--];
    }
    if (taken != elements) return {};
    if (d > 0) step = strides[d - 1], elements = taken = 1;
  }
  if (sizes.empty())
    for (; view >= 0; --view) out[view] = 1;
  return view < 0 ? std::optional<Dims>(out) : std::nullopt;
}

// `shape` with its -1 replaced by the inferred size.
Dims infer_shape(const Dims& shape, int64_t numel) {
  Dims out = shape;
  Dims sizes;
  int64_t unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (unknown >= 0) throw RuntimeError("only one dimension can be inferred (shape {})", shape.str());
      unknown = static_cast<int64_t>(i);
    } else if (shape[i] < 0) {
      throw RuntimeError("invalid shape dimension {} at index {} of shape {}", shape[i], i, shape.str());
    } else {
      sizes.push_back(shape[i]);
    }
  }
  int64_t known = checked_product(sizes);
  if (unknown >= 0) {
    if (known == 0)
      throw RuntimeError(
          "cannot reshape tensor of {} elements into shape {} because the unspecified dimension size -1 can be any value and is ambiguous",
          numel, shape.str());
    out[unknown] = numel / known;
    known *= out[unknown];
  }
  if (known != numel) throw RuntimeError("shape '{}' is invalid for input of size {}", shape.str(), numel);
  return out;
}

}  // namespace

Tensor Tensor::view(const Dims& wanted) const {
  const Dims shape = infer_shape(wanted, numel());
  const auto entries = [&] {
    return batching::each_entry(*this, "view", [&](const Tensor& v, const batching::Batch& b) { return v.view(b.under(shape)); });
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries}, ops::SparseRule{entries})) return *std::move(y);
  const auto strides = strides_for(sizes(), this->strides(), shape);
  if (!strides)
    throw RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
        "subspaces). Use .reshape(...) instead. (sizes {}, strides {}, wanted {})",
        sizes().str(), this->strides().str(), shape.str());
  return record(ops::make_view(*this, shape, *strides, storage_offset(), "view"), "ViewBackward0", {this}, {},
                WithJvp([old = sizes()](Grads g, Grads) { return std::vector{g[0].defined() ? g[0].reshape(old) : Tensor()}; },
                        [shape](Grads t, Grads) { return t[0].reshape(shape); }));
}

namespace {
// view(dtype): sizes and strides of the same memory for elements of another size; the last dimension changes. Returns the offset.
int64_t reinterpreted(const Tensor& t, DType type, Dims& sizes, Dims& strides) {
  const auto from = static_cast<int64_t>(t.element_size()), to = static_cast<int64_t>(size_of(type));
  if (from == to) return t.storage_offset();
  const std::string what = fmt::format("to view {} as {} (different element sizes)", ops::torch_name(t.dtype()), ops::torch_name(type));
  if (sizes.empty()) throw RuntimeError("self.dim() cannot be 0 {}", what);
  if (strides.back() != 1) throw RuntimeError("self.stride(-1) must be 1 {}, but got {}", what, strides.back());
  if (from > to) {
    sizes.back() = times(sizes.back(), from / to);
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = times(strides[d], from / to);
    return times(t.storage_offset(), from / to);
  }
  const int64_t n = to / from;
  if (sizes.back() % n != 0) throw RuntimeError("self.size(-1) must be divisible by {} {}, but got {}", n, what, sizes.back());
  if (t.storage_offset() % n != 0)
    throw RuntimeError("self.storage_offset() must be divisible by {} {}, but got {}", n, what, t.storage_offset());
  sizes.back() /= n;
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    if (strides[d] % n != 0) throw RuntimeError("self.stride({}) must be divisible by {} {}, but got {}", d, n, what, strides[d]);
    strides[d] /= n;
  }
  return t.storage_offset() / n;
}
}  // namespace

Tensor Tensor::view(DType type) const {
  const auto entries = [&] {
    return batching::each_entry(*this, "view", [&](const Tensor& v) {
      return dim() || element_size() == size_of(type) ? v.view(type) : v.unsqueeze(1).view(type);
    });
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries}, ops::SparseRule{entries})) return *std::move(y);
  Dims new_sizes = sizes(), new_strides = strides();
  const int64_t offset = reinterpreted(*this, type, new_sizes, new_strides);
  Tensor v = ops::make_view(*this, std::move(new_sizes), std::move(new_strides), offset, "view");
  if (runtime::Queue* q = impl_->storage->pending.load()) q->flush();
  v.impl()->set_dtype(type);
  return v;
}

Tensor Tensor::reshape(const Dims& wanted) const {
  const Dims shape = infer_shape(wanted, numel());
  const auto entries = [&] {
    return batching::each_entry(*this, "reshape", [&](const Tensor& v, const batching::Batch& b) { return v.reshape(b.under(shape)); });
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries}, ops::SparseRule{entries})) return *std::move(y);
  if (shape == sizes()) return view(shape);
  return strides_for(sizes(), strides(), shape) ? view(shape) : clone(MemoryFormat::Contiguous).view(shape);
}

Tensor Tensor::permute(const Dims& dims) const {
  if (dims.size() != sizes().size())
    throw RuntimeError(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions "
        "i.e. input.dim() = {} is not equal to len(dims) = {}",
        dim(), dims.size());
  Dims new_sizes, new_strides, inverse(dims.size(), -1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], dim());
    if (inverse[d] >= 0) throw RuntimeError("permute(): duplicate dims are not allowed. (dims {})", dims.str());
    inverse[d] = static_cast<int64_t>(i);
    new_sizes.push_back(sizes()[d]);
    new_strides.push_back(strides()[d]);
  }
  const auto entries = [&] {
    Dims order = batching::behind_batch(dims, dim());
    order.insert(0, 0);
    return batching::each_entry(*this, [&](const Tensor& v) { return v.permute(order); });
  };
  const auto sparse = [&] {
    Dims order;
    for (const int64_t d : dims) order.push_back(wrap_dim(d, dim()));
    return ops::sparse_permute(*this, order);
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  return record(ops::make_view(*this, std::move(new_sizes), std::move(new_strides), storage_offset(), "permute"), "PermuteBackward0",
                {this}, {},
                WithJvp([inverse](Grads g, Grads) { return std::vector{g[0].defined() ? g[0].permute(inverse) : Tensor()}; },
                        [dims](Grads t, Grads) { return t[0].permute(dims); }));
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  const auto sparse = [this, a, b] { return ops::sparse_transpose(*this, a, b); };
  if (auto y = ops::wrapped(ops::kNoCasts, &Tensor::transpose, *this, ops::Dim{a}, ops::Dim{b}, ops::SparseRule{sparse}))
    return *std::move(y);
  a = wrap_dim(a, dim()), b = wrap_dim(b, dim());
  Dims new_sizes = sizes(), new_strides = strides();
  if (dim() > 0) {
    std::swap(new_sizes[a], new_sizes[b]);
    std::swap(new_strides[a], new_strides[b]);
  }
  return record(ops::make_view(*this, std::move(new_sizes), std::move(new_strides), storage_offset(), "transpose"), "TransposeBackward0",
                {this}, {},
                WithJvp([a, b](Grads g, Grads) { return std::vector{g[0].defined() ? g[0].transpose(a, b) : Tensor()}; },
                        [a, b](Grads t, Grads) { return t[0].transpose(a, b); }));
}

Tensor Tensor::t() const {
  if (dim() > 2) throw RuntimeError("t() expects a tensor with <= 2 dimensions, but self is {}D", dim());
  if (dim() < 2) return view(sizes());
  const auto turned = [&] { return transpose(0, 1); };
  if (auto y = ops::by_rules(*this, ops::BatchRule{turned}, ops::SparseRule{turned})) return *std::move(y);
  return record(
      ops::make_view(*this, {sizes()[1], sizes()[0]}, {strides()[1], strides()[0]}, storage_offset(), "t"), "TBackward0", {this}, {},
      WithJvp([](Grads g, Grads) { return std::vector{g[0].defined() ? g[0].t() : Tensor()}; }, [](Grads t, Grads) { return t[0].t(); }));
}

Tensor Tensor::movedim(int64_t from, int64_t to) const {
  from = wrap_dim(from, dim()), to = wrap_dim(to, dim());
  Dims order;
  for (int64_t i = 0; i < dim(); ++i)
    if (i != from) order.push_back(i);
  order.insert(to, from);
  return permute(order);
}

namespace {
Tensor reshaped_view(const Tensor& t, Dims sizes, Dims strides, const char* op, const char* backward) {
  const Tensor view = ops::make_view(t, sizes, std::move(strides), t.storage_offset(), op);
  return record(view, backward, {&t}, {},
                WithJvp([old = t.sizes()](Grads g, Grads) { return std::vector{g[0].defined() ? g[0].reshape(old) : Tensor()}; },
                        [sizes](Grads t, Grads) { return t[0].reshape(sizes); }));
}
}  // namespace

Tensor Tensor::squeeze() const {
  const auto entries = [&] {
    Dims kept;
    for (const int64_t n : sizes())
      if (n != 1) kept.push_back(n);
    return view(kept);
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries})) return *std::move(y);
  Dims new_sizes, new_strides;
  for (int64_t i = 0; i < dim(); ++i)
    if (sizes()[i] != 1) new_sizes.push_back(sizes()[i]), new_strides.push_back(strides()[i]);
  return reshaped_view(*this, std::move(new_sizes), std::move(new_strides), "squeeze", "SqueezeBackward0");
}

Tensor Tensor::squeeze(int64_t d) const {
  if (auto y = ops::wrapped(
          ops::kNoCasts, [](const Tensor& v, int64_t at) { return v.squeeze(at); }, *this, ops::Dim{d}))
    return *std::move(y);
  d = wrap_dim(d, dim());
  Dims new_sizes = sizes(), new_strides = strides();
  if (dim() > 0 && new_sizes[d] == 1) new_sizes.erase(d), new_strides.erase(d);
  return reshaped_view(*this, std::move(new_sizes), std::move(new_strides), "squeeze", "SqueezeBackward1");
}

Tensor Tensor::unsqueeze(int64_t d) const {
  const auto again = [this, d](const Tensor& v) { return v.unsqueeze(wrap_dim(d, dim() + 1) + 1); };
  const auto sparse = [this, d] { return ops::sparse_unsqueeze(*this, d); };
  if (auto y = ops::wrapped(ops::kNoCasts, again, ops::Entries{*this}, ops::SparseRule{sparse})) return *std::move(y);
  d = wrap_dim(d, dim() + 1);
  Dims new_sizes = sizes(), new_strides = strides();
  new_strides.insert(d, d < dim() ? moved_by(0, sizes()[d], strides()[d]) : 1);
  new_sizes.insert(d, 1);
  return reshaped_view(*this, std::move(new_sizes), std::move(new_strides), "unsqueeze", "UnsqueezeBackward0");
}

Tensor Tensor::expand(const Dims& shape) const {
  if (shape.size() < sizes().size())
    throw RuntimeError(
        "expand({}, size={}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
        name_of(dtype()), shape.str(), shape.size(), dim());
  const auto entries = [&] {
    const batching::Batch b{this};
    return b.entry(b.aligned(*this, static_cast<int64_t>(shape.size())).expand(b.under(shape)));
  };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries})) return *std::move(y);
  Dims new_sizes = shape, new_strides(shape.size(), 0);
  const size_t shift = shape.size() - sizes().size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t old = i < shift ? 1 : sizes()[i - shift];
    if (shape[i] == -1) {
      if (i < shift) throw RuntimeError("The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {}", i);
      new_sizes[i] = old;
    } else if (shape[i] < 0 || (shape[i] != old && old != 1)) {
      throw RuntimeError(
          "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}.  Target sizes: {}.  "
          "Tensor sizes: {}",
          shape[i], old, i, shape.str(), sizes().str());
    }
    if (i >= shift && new_sizes[i] == old) new_strides[i] = strides()[i - shift];
  }
  // New leading dimensions of size 1 get the strides of a stacked tensor.
  for (size_t i = shift; i-- > 0;)
    if (new_sizes[i] == 1 && i + 1 < shape.size()) new_strides[i] = moved_by(0, new_sizes[i + 1], new_strides[i + 1]);
  return record(ops::make_view(*this, new_sizes, std::move(new_strides), storage_offset(), "expand"), "ExpandBackward0", {this}, {},
                WithJvp([old = sizes()](Grads g, Grads) { return std::vector{g[0].defined() ? ops::sum_to(g[0], old) : Tensor()}; },
                        [new_sizes](Grads t, Grads) { return t[0].expand(new_sizes); }));
}

Tensor Tensor::flatten(int64_t start, int64_t end) const {
  start = wrap_dim(start, dim()), end = wrap_dim(end, dim());
  if (start > end) throw RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim ({} after {})", start, end);
  if (dim() == 0) return reshape({1});
  if (start == end) return *this;
  Dims shape, reduced;
  for (int64_t i = 0; i < dim(); ++i) {
    (i < start || i > end ? shape : reduced).push_back(sizes()[i]);
    if (i == end) shape.push_back(checked_product(reduced));
  }
  return reshape(shape);
}

Tensor Tensor::unflatten(int64_t d, const Dims& parts) const {
  d = wrap_dim(d, dim());
  const Dims inner = infer_shape(parts, sizes()[d]);
  Dims shape;
  for (int64_t i = 0; i < dim(); ++i) {
    if (i != d)
      shape.push_back(sizes()[i]);
    else
      for (int64_t p : inner) shape.push_back(p);
  }
  return view(shape);
}

namespace {
// Records a view of some of t's elements. Its gradient copies g into the same view of zeros.
template <class View>
Tensor partial_view(const Tensor& t, Tensor out, const char* backward, View view) {
  const auto placed = [old = t.sizes(), view](Grads g, Grads) {
    if (!g[0].defined()) return std::vector{Tensor()};
    Tensor whole = zeros(old, Options(g[0].dtype(), g[0].device()));
    view(whole).copy_(g[0]);
    return std::vector{whole};
  };
  return record(std::move(out), backward, {&t}, {}, WithJvp(placed, [view](Grads t, Grads) { return view(t[0]); }));
}
}  // namespace

Tensor Tensor::narrow(int64_t d, int64_t start, int64_t length) const {
  if (dim() == 0) throw RuntimeError("narrow() cannot be applied to a 0-dim tensor.");
  d = wrap_dim(d, dim());
  const int64_t n = sizes()[d];
  if (length < 0) throw RuntimeError("narrow(): length must be non-negative. (got {})", length);
  if (start < -n || start > n) throw IndexError("start out of range (expected to be in range of [{}, {}], but got {})", -n, n, start);
  if (start < 0) start += n;
  if (length > n - start) throw RuntimeError("start ({}) + length ({}) exceeds dimension size ({}).", start, length, n);
  return slice(d, start, start + length);
}

Tensor Tensor::select(int64_t d, int64_t index) const {
  if (dim() == 0) throw IndexError("select() cannot be applied to a 0-dim tensor.");
  const auto sparse = [this, d, index] { return ops::sparse_select(*this, d, index); };
  if (auto y = ops::wrapped(ops::kNoCasts, &Tensor::select, *this, ops::Dim{d}, index, ops::SparseRule{sparse})) return *std::move(y);
  d = wrap_dim(d, dim());
  const int64_t n = sizes()[d];
  if (index < -n || index >= n) throw IndexError("index {} is out of bounds for dimension {} with size {}", index, d, n);
  if (index < 0) index += n;
  Dims new_sizes = sizes(), new_strides = strides();
  const int64_t offset = moved_by(storage_offset(), index, new_strides[d]);
  new_sizes.erase(d), new_strides.erase(d);
  return partial_view(*this, ops::make_view(*this, std::move(new_sizes), std::move(new_strides), offset, "select"), "SelectBackward0",
                      [d, index](const Tensor& w) { return w.select(d, index); });
}

Tensor Tensor::slice(int64_t d, std::optional<int64_t> from, std::optional<int64_t> to, int64_t step) const {
  if (dim() == 0) throw IndexError("slice() cannot be applied to a 0-dim tensor.");
  d = wrap_dim(d, dim());
  if (step <= 0) throw ValueError("step must be greater than zero (got {}); use flip() to reverse", step);
  if (auto y = ops::wrapped(ops::kNoCasts, &Tensor::slice, *this, ops::Dim{d}, from, to, step)) return *std::move(y);
  const int64_t n = sizes()[d];
  const auto clip = [n](int64_t i) { return std::min(std::max(i < 0 ? i + n : i, int64_t{0}), n); };
  const int64_t start = clip(from.value_or(0)), stop = std::max(start, clip(to.value_or(n)));
  Dims new_sizes = sizes(), new_strides = strides();
  new_sizes[d] = stop == start ? 0 : (stop - start - 1) / step + 1;
  const int64_t offset = moved_by(storage_offset(), start, new_strides[d]);
  new_strides[d] = moved_by(0, new_strides[d], step);
  return partial_view(*this, ops::make_view(*this, std::move(new_sizes), std::move(new_strides), offset, "slice"), "SliceBackward0",
                      [d, start, stop, step](const Tensor& w) { return w.slice(d, start, stop, step); });
}

Tensor Tensor::diagonal(int64_t offset, int64_t a, int64_t b) const {
  if (auto y = ops::wrapped(ops::kNoCasts, &Tensor::diagonal, *this, offset, ops::Dim{a}, ops::Dim{b})) return *std::move(y);
  a = wrap_dim(a, dim()), b = wrap_dim(b, dim());
  if (a == b) throw RuntimeError("diagonal dimensions cannot be identical {}, {}", a, b);
  Dims new_sizes, new_strides;
  for (int64_t i = 0; i < dim(); ++i)
    if (i != a && i != b) new_sizes.push_back(sizes()[i]), new_strides.push_back(strides()[i]);
  const int64_t rows = sizes()[a], cols = sizes()[b];
  const int64_t n = std::max<int64_t>(0, offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols));
  const int64_t start = n == 0 ? 0 : offset >= 0 ? moved_by(0, offset, strides()[b]) : moved_by(0, -offset, strides()[a]);
  new_sizes.push_back(n);
  new_strides.push_back(moved_by(strides()[a], 1, strides()[b]));
  return partial_view(*this, ops::make_view(*this, std::move(new_sizes), std::move(new_strides), storage_offset() + start, "diagonal"),
                      "DiagonalBackward0", [offset, a, b](const Tensor& w) { return w.diagonal(offset, a, b); });
}

Tensor Tensor::unfold(int64_t d, int64_t size, int64_t step) const {
  d = wrap_dim(d, dim());
  const int64_t n = dim() == 0 ? 1 : sizes()[d];
  if (size < 0) throw RuntimeError("size is {} but must be >= 0", size);
  if (size > n) throw RuntimeError("maximum size for tensor at dimension {} is {} but size is {}", d, n, size);
  if (step <= 0) throw RuntimeError("step is {} but must be > 0", step);
  const auto again = [&](const Tensor& v) { return dim() ? v.unfold(d + 1, size, step) : v.unsqueeze(1).slice(1, 0, size); };
  if (auto y = ops::wrapped(ops::kNoCasts, again, ops::Entries{*this})) return *std::move(y);
  Dims new_sizes = sizes(), new_strides = strides();
  new_sizes.push_back(size);
  new_strides.push_back(dim() == 0 ? 1 : new_strides[d]);
  if (dim() > 0) {
    new_sizes[d] = (n - size) / step + 1;
    new_strides[d] = moved_by(0, new_strides[d], step);
  }
  return record(ops::make_view(*this, std::move(new_sizes), std::move(new_strides), storage_offset(), "unfold"), "UnfoldBackward0", {this},
                {},
                WithJvp(
                    [old = sizes(), d, size, step](Grads g, Grads) {
                      if (!g[0].defined()) return std::vector{Tensor()};
                      if (old.empty()) return std::vector{naru::sum(g[0])};
                      // Windows may overlap: element k of all windows is one strided slice; add up the slices.
                      Tensor whole = zeros(old, Options(g[0].dtype(), g[0].device()));
                      const int64_t windows = g[0].size(d);
                      for (int64_t k = 0; k < size; ++k) whole.slice(d, k, k + (windows - 1) * step + 1, step).add_(g[0].select(-1, k));
                      return std::vector{whole};
                    },
                    [d, size, step](Grads t, Grads) { return t[0].unfold(d, size, step); }));
}

namespace {
// The offset of the last element from the first, plus 1.
int64_t reach_of(const Dims& sizes, const Dims& strides) {
  if (product(sizes) == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) last = plus(last, times(sizes[d] - 1, strides[d]));
  return last + 1;
}

Tensor strided_entries(const Tensor& t, Dims sizes, Dims strides, int64_t offset) {
  if (sizes.size() != strides.size())
    throw RuntimeError("vmap: as_strided: size and stride must have the same length! Got size {} and stride {}.", sizes.str(),
                       strides.str());
  const int64_t first = t.storage_offset();
  if (offset < first || plus(offset, reach_of(sizes, strides)) > first + reach_of(t.sizes(), t.strides()))
    throw RuntimeError(
        "vmap: as_strided: size {}, stride {} and storage_offset {} reach outside of an entry. This is not supported inside of vmap; "
        "rewrite "
        "it by views that stay within, or by slices and reshapes.",
        sizes.str(), strides.str(), offset);
  return batching::each_entry(t, [&](const Tensor& v, const batching::Batch& b) {
    strides.insert(0, v.strides()[0]);
    return v.as_strided(b.under(sizes), strides, offset);
  });
}
}  // namespace

Tensor Tensor::as_strided(const Dims& new_sizes, const Dims& new_strides, int64_t offset) const {
  const auto entries = [&] { return strided_entries(*this, new_sizes, new_strides, offset); };
  if (auto y = ops::by_rules(*this, ops::BatchRule{entries})) return *std::move(y);
  if (new_sizes.size() != new_strides.size())
    throw RuntimeError("mismatch in length of strides and shape (shape {}, strides {})", new_sizes.str(), new_strides.str());
  if (offset < 0) throw RuntimeError("Tensor: invalid storage offset {}", offset);
  __int128 last = offset;  // 128 bits: sizes and strides are arbitrary
  bool none = false;
  for (size_t i = 0; i < new_sizes.size(); ++i) {
    if (new_sizes[i] < 0) throw RuntimeError("as_strided: negative sizes are not allowed, got {}", new_sizes.str());
    none = none || new_sizes[i] == 0;
    if (new_strides[i] < 0)
      throw RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: {}", new_strides.str());
    last += static_cast<__int128>(new_sizes[i] - 1) * new_strides[i];
  }
  if (!none && ((last + 1) * static_cast<int64_t>(element_size()) > static_cast<__int128>(impl_->storage->bytes)))
    throw RuntimeError(
        "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size of {} are out of bounds for storage "
        "of size {}",
        new_sizes.str(), new_strides.str(), offset, element_size(), static_cast<double>((last + 1) * static_cast<int64_t>(element_size())),
        impl_->storage->bytes);
  return record(ops::make_view(*this, new_sizes, new_strides, offset, "as_strided"), "AsStridedBackward0", {this}, {},
                [old = sizes(), old_strides = strides(), new_strides, shift = offset - storage_offset()](Grads g, Grads) {
                  return std::vector{g[0].defined() ? autograd::gradient_of_base(g[0], new_strides, shift, old, old_strides) : Tensor()};
                });
}

Tensor broadcast_to(const Tensor& t, const Dims& shape) { return t.expand(shape); }

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Dims shape;
  for (const Tensor& t : tensors) shape = broadcast_shapes(shape, t.sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.expand(shape));
  return out;
}

Tensor narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  ops::require_defined(t, "narrow_copy", "input");
  if (ops::has_sparse_form(t)) return ops::sparse_narrow_copy(t, dim, start, length);
  return t.narrow(dim, start, length).clone(MemoryFormat::Contiguous);
}

Tensor atleast_1d(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }
Tensor atleast_2d(const Tensor& t) { return t.dim() < 2 ? t.reshape({1, -1}) : t; }
Tensor atleast_3d(const Tensor& t) {
  if (t.dim() < 2) return t.reshape({1, -1, 1});
  return t.dim() == 2 ? t.unsqueeze(-1) : t;
}

}  // namespace naru
