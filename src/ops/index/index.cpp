// Tensor::index and index_put_: what x[...] means. Integers, slices, None and Ellipsis make a view; masks and index
// tensors then address into that view.
#include <algorithm>

#include "naru/ops.h"
#include "ops/index/addressing.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::Addressing;
using ops::Positions;

// A mask or an index tensor, and the dimension of the view it starts at.
struct Placed {
  Tensor tensor;
  int64_t dim;
  bool mask;
  int64_t rank() const { return mask ? tensor.dim() : 1; }
};

struct Parsed {
  Tensor view;
  std::vector<Placed> placed;
};

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::U8; }

int64_t dims_taken(const Index& i) {
  switch (i.kind) {
    case Index::Kind::Integer:
    case Index::Kind::Slice:
      return 1;
    case Index::Kind::Tensor:
      return i.tensor.defined() && is_mask(i.tensor) ? i.tensor.dim() : 1;
    default:
      return 0;
  }
}

Tensor select_checked(const Tensor& view, int64_t dim, int64_t index, int64_t dim_of_self) {
  const int64_t n = view.sizes()[dim];
  if (index < -n || index >= n) throw IndexError("index {} is out of bounds for dimension {} with size {}", index, dim_of_self, n);
  return view.select(dim, index);
}

// One position along a new dimension of size 1, or none.
Tensor whole_or_nothing(bool all, Device device) { return zeros({all ? 1 : 0}, Options(DType::I64, device)); }

void parse_tensor(Parsed& p, const Tensor& t, bool writing, int64_t& dim, int64_t& taken) {
  if (!t.defined()) throw TypeError("index: got an undefined tensor; wanted integers or a mask");
  if (is_inexact(t.dtype()) || is_wide_unsigned(t.dtype()) || t.dtype() == DType::I8 || t.dtype() == DType::I16)
    throw IndexError("tensors used as indices must be long, int, byte or bool tensors (got {})", name_of(t.dtype()));
  const Device device = p.view.device();
  if (t.device() != device && !t.device().is_cpu())
    throw RuntimeError("indices should be either on cpu or on the same device as the indexed tensor ({}), got one on {}", device.str(),
                       t.device().str());
  if (is_batched(t) && is_mask(t) && !writing)
    throw RuntimeError(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow (a mask as an index). We don't support "
        "that yet; torch.where keeps the shape.");
  if (t.dim() == 0 && is_mask(t)) {
    p.view = p.view.unsqueeze(dim);
    p.placed.push_back({whole_or_nothing(t.item().to_bool(), device), dim++, false});
  } else if (is_batched(t) && t.dim() == 0) {
    p.placed.push_back({t, dim++, false});
    ++taken;
  } else if (t.dim() == 0) {
    p.view = select_checked(p.view, dim, t.item().to_int(), taken++);
  } else {
    p.placed.push_back({t, dim, is_mask(t)});
    dim += p.placed.back().rank();
    taken += p.placed.back().rank();
  }
}

Parsed parse(const Tensor& self, std::span<const Index> indices, bool writing = false) {
  ops::require_defined(self, "index", "input");
  int64_t wanted = 0;
  for (const Index& i : indices) wanted += dims_taken(i);
  if (self.dim() == 0 && indices.size() == 1 && indices[0].kind == Index::Kind::Integer)
    throw IndexError(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
        "0-dim tensor "
        "to a number");
  if (wanted > self.dim()) throw IndexError("too many indices for tensor of dimension {}", self.dim());

  Parsed p{self, {}};
  int64_t dim = 0, taken = 0;  // in the view; in self
  bool ellipsis = false;
  for (const Index& i : indices) switch (i.kind) {
      case Index::Kind::Integer:
        p.view = select_checked(p.view, dim, i.integer, taken++);
        break;
      case Index::Kind::Slice:
        if (i.slice.start || i.slice.stop || i.slice.step != 1) p.view = p.view.slice(dim, i.slice.start, i.slice.stop, i.slice.step);
        ++dim, ++taken;
        break;
      case Index::Kind::None:
        p.view = p.view.unsqueeze(dim++);
        break;
      case Index::Kind::Ellipsis:
        // A second one stands for no dimension.
        if (!ellipsis) dim += self.dim() - wanted, taken += self.dim() - wanted;
        ellipsis = true;
        break;
      case Index::Kind::Bool:
        p.view = p.view.unsqueeze(dim);
        p.placed.push_back({whole_or_nothing(i.integer != 0, p.view.device()), dim++, false});
        break;
      case Index::Kind::Tensor:
        parse_tensor(p, i.tensor, writing, dim, taken);
        break;
    }
  for (size_t k = 0; k < p.placed.size(); ++k)
    for (int64_t j = 0; p.placed[k].mask && j < p.placed[k].rank(); ++j)
      if (const int64_t d = p.placed[k].dim + j; p.placed[k].tensor.sizes()[j] != p.view.sizes()[d])
        throw IndexError("The shape of the mask {} at index {} does not match the shape of the indexed tensor {} at index {}",
                         p.placed[k].tensor.sizes().str(), d, p.view.sizes().str(), d);
  return p;
}

// A view in which the dimensions under a mask of several dimensions are one, if strides allow: one position then says
// what would take several.
void flatten_under_mask(Parsed& p) {
  if (p.placed.size() != 1 || !p.placed[0].mask || p.placed[0].rank() < 2) return;
  const int64_t first = p.placed[0].dim, last = first + p.placed[0].rank() - 1;
  for (int64_t d = first; d < last; ++d)
    if (p.view.strides()[d] != p.view.strides()[d + 1] * p.view.sizes()[d + 1]) return;
  p.view = p.view.flatten(first, last);
  p.placed[0].tensor = p.placed[0].tensor.reshape({-1});
}

// Where the index dimensions land: in place of the indexed ones if those are neighbours, else in front (NumPy's rule).
Addressing address(const Parsed& p, Positions& positions) {
  Addressing at;
  at.sizes = p.view.sizes();
  for (const Placed& placed : p.placed) {
    if (!placed.mask) {
      at.dims.push_back(static_cast<int>(placed.dim));
      positions.push_back(ops::as_positions(placed.tensor, p.view.device(), "index"));
      continue;
    }
    const Positions columns = ops::nonzero_columns(placed.tensor);
    for (size_t j = 0; j < columns.size(); ++j) {
      at.dims.push_back(static_cast<int>(placed.dim + static_cast<int64_t>(j)));
      positions.push_back(columns[j].to(p.view.device()));
    }
  }

  Dims index_shape;
  try {
    for (const Tensor& t : positions) index_shape = broadcast_shapes(index_shape, t.sizes());
  } catch (const RuntimeError&) {
    std::string shapes;
    for (const Tensor& t : positions) shapes += (shapes.empty() ? "" : ", ") + t.sizes().str();
    throw IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes);
  }

  if (product(index_shape) > 0)
    for (const int d : at.dims)
      if (p.view.sizes()[static_cast<size_t>(d)] == 0)
        throw IndexError("index is out of bounds for dimension with size 0 (dimension {} of {})", d, p.view.sizes().str());
  const bool neighbours = at.dims.back() - at.dims.front() + 1 == static_cast<int>(at.dims.size());
  const auto indexed = [&](int64_t d) { return std::find(at.dims.begin(), at.dims.end(), static_cast<int>(d)) != at.dims.end(); };
  const auto add_index_dims = [&] {
    for (int64_t n : index_shape) at.shape.push_back(n), at.from.push_back(-1);
  };
  size_t behind = 0;  // dimensions that follow those of the index
  if (!neighbours) add_index_dims();
  for (int64_t d = 0; d < p.view.dim(); ++d) {
    if (neighbours && d == at.dims.front()) add_index_dims();
    if (indexed(d)) continue;
    at.shape.push_back(p.view.sizes()[d]);
    at.from.push_back(d);
    behind += !neighbours || d > at.dims.front();
  }
  if (behind > 0)
    for (Tensor& t : positions) {
      Dims shape = t.sizes();
      shape.resize(shape.size() + behind);
      std::fill(shape.end() - static_cast<std::ptrdiff_t>(behind), shape.end(), 1);
      t = t.view(shape);
    }
  return at;
}

// Leading dimensions of size 1 beyond `rank` are dropped, as assignment allows.
Tensor without_leading_ones(Tensor t, int64_t rank) {
  while (t.dim() > rank && t.sizes()[0] == 1) t = t.squeeze(0);
  return t;
}

bool is_number(const Operand& o) { return !o.is_tensor() || o.tensor().dim() == 0; }

void assign_view(Tensor view, const Operand& value, bool accumulate) {
  if (!value.is_tensor()) {
    if (accumulate)
      view.add_(value);
    else
      view.fill_(ops::rounded(value.scalar(), view.dtype()));
    return;
  }
  const Tensor v = without_leading_ones(value.tensor(), view.dim());
  const Tensor spread = v.sizes() == view.sizes() || v.dim() == 0 ? v : v.expand(view.sizes());
  if (accumulate)
    view.add_(view.dim() ? spread : value.tensor());
  else
    view.copy_(spread);
}

// target[what p has parsed] = value, where masks or positions are among the indices.
void assign_places(const Tensor& target, const Parsed& p, const Operand& value, bool accumulate) {
  if (!value.is_tensor()) ops::converted(value.scalar(), target.dtype());
  if (value.is_tensor() && value.tensor().dim() > 0) {
    const Tensor* both[] = {&target, &value.tensor()};
    const char* const roles[] = {"input", "value"};
    ops::common_device(both, roles, "index_put_");
  }
  // Without elements nobody knows how many a mask chooses: any number of values is taken.
  const bool any = target.device().is_meta() && value.is_tensor();
  const bool masked = p.placed.size() == 1 && p.placed[0].mask, of_entries = masked && is_batched(p.placed[0].tensor);
  if (masked && (any || of_entries || (is_number(value) && !accumulate))) {
    Tensor mask = p.placed[0].tensor.to(target.device(), DType::Bool, false, false);
    for (int64_t d = p.placed[0].dim + p.placed[0].rank(); d < p.view.dim(); ++d) mask = mask.unsqueeze(-1);
    if (of_entries && value.is_tensor()) {  // as many values as elements, as the entries choose different ones
      p.view.copy_(where(mask, value.tensor().to(target.dtype()), p.view));
      return;
    }
    return masked_fill_(p.view, mask, any ? sum(value.tensor(), Dims{}, false, value.tensor().dtype()) : value);
  }
  Positions positions;
  Addressing at = address(p, positions);
  at.op = "index_put_";
  if (!value.is_tensor()) return ops::scatter_at(p.view, at, positions, value, accumulate, "IndexPutBackward0");
  const Tensor v = without_leading_ones(value.tensor(), static_cast<int64_t>(at.shape.size()));
  bool fits = v.sizes().size() <= at.shape.size();
  for (size_t d = 0; fits && d < v.sizes().size(); ++d) {
    const int64_t n = v.sizes()[v.sizes().size() - 1 - d];
    fits = n == 1 || n == at.shape[at.shape.size() - 1 - d];
  }
  if (!fits)
    throw RuntimeError("shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}", v.sizes().str(),
                       at.shape.str());
  if (value.tensor().dtype() != target.dtype())
    throw RuntimeError("Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
                       ops::torch_name(target.dtype()), ops::torch_name(value.tensor().dtype()));
  ops::scatter_at(p.view, at, positions, v, accumulate, "IndexPutBackward0");
}

}  // namespace

Tensor Tensor::index(std::span<const Index> indices) const {
  Parsed p = parse(*this, indices);
  if (p.placed.empty()) return p.view.is(*this) ? view(sizes()) : p.view;
  flatten_under_mask(p);
  Positions positions;
  const Addressing at = address(p, positions);
  return ops::gather_at(p.view, at, positions, "IndexBackward0");
}

Tensor Tensor::index(IndexList indices, SourceLocation where) const {
  return detail::with_location(where, [&] { return index(std::span(indices.begin(), indices.size())); });
}

Tensor Tensor::select_first(int64_t i) const {
  if (impl_ && !impl_->sizes.empty())
    if (const int64_t n = impl_->sizes[0]; i >= -n && i < n) return select(0, i);
  const Index index(i);  // an error
  return this->index({&index, 1});
}
Tensor Tensor::operator[](const Slice& slice) const {
  const Index index(slice);
  return this->index({&index, 1});
}
Tensor Tensor::operator[](NoneIndex) const { return unsqueeze(0); }
Tensor Tensor::operator[](EllipsisIndex) const { return index({}); }

const Tensor& Tensor::operator=(const Operand& value) && { return index_put_({}, value); }

const Tensor& Tensor::index_put_(IndexList indices, const Operand& value, bool accumulate, SourceLocation where) const {
  detail::with_location(where, [&] { index_put_(std::span(indices.begin(), indices.size()), value, accumulate); });
  return *this;
}

const Tensor& Tensor::index_put_(std::span<const Index> indices, const Operand& value, bool accumulate) const {
  if (value.is_tensor()) ops::require_defined(value.tensor(), "index_put_", "value");
  ops::require_defined(*this, "index_put_", "input");
  if (ops::has_sparse_form(*this)) ops::throw_no_sparse("index_put_", *this);  // what is selected of it is no view
  const Parsed p = parse(*this, indices, true);
  if (p.placed.empty())
    assign_view(p.view, value, accumulate);
  else
    assign_places(*this, p, value, accumulate);
  if (is_batched(*this)) [[unlikely]]
    set_batched(*this, batch_parts(*this).value);
  return *this;
}

// --- parts of an index, and what x[{...}] gives

Index::Index(const std::vector<int64_t>& positions)
    : Index(from_data(positions.data(), {static_cast<int64_t>(positions.size())}, DType::I64, Device())) {}

Index::Index(const char* dots) : Index(Ellipsis) {
  if (std::string_view(dots) != "...") throw IndexError("index: the only text that is an index is \"...\", got \"{}\"", dots);
}

Indexed::Indexed(const Tensor& x, std::span<const Index> indices) {
  Parsed p = parse(x, indices);
  if (p.placed.empty()) {
    read_ = p.view.is(x) ? x.view(x.sizes()) : std::move(p.view);
  } else {
    x_ = x;
    parts_.assign(indices.begin(), indices.end());
    seen_ = versions();
  }
}
Indexed Tensor::operator[](IndexList indices) const { return Indexed(*this, {indices.begin(), indices.size()}); }
Indexed Tensor::operator[](const Tensor& mask_or_positions) const {
  const Index index(mask_or_positions);
  return Indexed(*this, {&index, 1});
}

uint64_t Indexed::versions() const {
  uint64_t all = x_.version();
  for (const Index& i : parts_)
    if (i.tensor.defined()) all += i.tensor.version();
  return all;
}

const Tensor& Indexed::read() const {
  if (read_.defined()) return read_;
  if (versions() != seen_)
    throw RuntimeError(
        "index: the tensor of shape {} has changed since it was indexed, and its elements were not read before; keep what an index gives "
        "as a Tensor: Tensor y = x[mask]",
        x_.sizes().str());
  return read_ = x_.index(parts_);
}

const Indexed& Indexed::write(const Operand& value) const {
  if (!x_.defined())
    read_.index_put_({}, value);
  else
    x_.index_put_(parts_, value);
  return *this;
}

const Indexed& Indexed::update(const Tensor& (Tensor::*in_place)(const Operand&) const, const Operand& value) const {
  (read().*in_place)(value);
  if (x_.defined()) x_.index_put_(parts_, read_);
  return *this;
}

}  // namespace naru
