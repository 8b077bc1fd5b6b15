// Writes by position that are a few others: index_fill, index_copy, index_put, masked_scatter, diagonals; and take_along_dim.
#include <algorithm>

#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/index/addressing.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

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

// The sizes without the dimension that is indexed.
Dims slice_of(const Tensor& t, int64_t dim) {
  Dims sizes = t.sizes();
  if (!sizes.empty()) sizes.erase(static_cast<size_t>(std::min<int64_t>(dim, t.dim() - 1)));
  return sizes;
}

void check_copy(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
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
        "destination dimensionality ({})",
        source.dim(), t.dim());
  if (source.dim() == 0) return;
  if (!(slice_of(t, dim) == slice_of(source, dim)))
    throw RuntimeError(
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} and source slice shape: {}",
        slice_of(t, dim).str(), slice_of(source, dim).str());
  if (const int64_t n = source.size(std::min<int64_t>(dim, source.dim() - 1)); index.numel() != n)
    throw IndexError("index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})", index.numel(), n);
}

// index_fill: a mask of the places, so that one that is named twice is written once, and counts once for the gradient.
Tensor mask_of(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  if (index.dim() > 1) throw RuntimeError("Index has to be a vector/scalar (index_fill_: got shape {})", index.sizes().str());
  if (index.dtype() != DType::I64) throw IndexError("index_fill_(): Expected dtype int64 for index. (got {})", name_of(index.dtype()));
  if (!value.is_tensor() && value.scalar().is_complex() && !is_complex(t.dtype()))
    throw RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported (wanted a real number for {})",
                       name_of(t.dtype()));
  const int64_t d = wrap_dim(dim, t.dim());
  Tensor mask = zeros({t.dim() ? t.size(d) : 1}, Options(DType::Bool, t.device()));
  if (is_batched(index)) mask = batching::each_entry(index, [&](const Tensor&, const batching::Batch& b) { return b.whole(mask).clone(); });
  const std::vector<Index> parts{Index(index)};
  mask.index_put_(parts, Operand(true));
  Dims shape(static_cast<size_t>(t.dim()), 1);
  if (t.dim()) shape[static_cast<size_t>(d)] = t.size(d);
  return mask.view(shape);
}

}  // namespace

Tensor take_along_dim(const Tensor& t, const Tensor& index, std::optional<int64_t> dim) {
  if (dim && t.dim() != index.dim())
    throw RuntimeError(
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and "
        "{} dimensions for indices",
        t.dim(), index.dim());
  if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
    throw RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got {}", ops::torch_name(index.dtype()));
  const int64_t d = dim ? wrap_dim(*dim, t.dim()) : 0;
  // All but the dimension itself broadcast.
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
  return gather(source, d, where(flat < 0, flat + source.size(d), flat));
}

Tensor index_fill(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  Tensor out = t.clone();
  index_fill_(out, dim, index, value);
  return out;
}
void index_fill_(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  ops::fill_masked(t, mask_of(t, dim, index, value), value, "index_fill_");
}

void index_copy_(const Tensor& t, int64_t given, const Tensor& index, const Tensor& source) {
  const int64_t dim = wrap_dim(given, t.dim());
  check_copy(t, dim, index, source);
  const int64_t n = t.dim() == 0 ? 1 : t.size(dim);
  // On the cpu a negative place is found here; elsewhere, like any other bad one, by whoever reads next.
  if (index.device().is_cpu() && !is_batched(index))
    for (int64_t i : index.to_ints())
      if (i < 0 || i >= n) throw IndexError("index_copy_(): index {} is out of bounds for dimension {} with size {}", i, dim, n);
  assign_places(t, dim, index, source);
}
Tensor index_copy(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source) {
  if (auto y = ops::wrapped("index_copy", index_copy, t, dim, index, source)) return *std::move(y);
  Tensor out = t.clone(MemoryFormat::Contiguous);
  index_copy_(out, dim, index, source);
  return out;
}

Tensor index_add(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  Tensor out = t.clone(MemoryFormat::Contiguous);
  index_add_(out, dim, index, source, alpha);
  return out;
}

Tensor index_put(const Tensor& t, std::span<const Index> indices, const Operand& value, bool accumulate) {
  if (auto y = ops::wrapped("index_put", naru::index_put, t, indices, value, accumulate)) return *std::move(y);
  Tensor out = t.clone();
  out.index_put_(indices, value, accumulate);
  return out;
}

void masked_scatter_(const Tensor& t, const Tensor& mask, const Tensor& source) {
  const Tensor full_mask = broadcast_to(mask, t.sizes());
  const std::vector<Index> parts{Index(full_mask)};
  Tensor target = t;
  if (t.device().is_meta()) return void(target.index_put_(parts, source));
  const int64_t n = sum(full_mask).item<int64_t>();
  if (source.numel() < n)
    throw RuntimeError("masked_scatter: expected self and source to have same dtypes and source to have at least {} elements, got {}", n,
                       source.numel());
  target.index_put_(parts, source.reshape({-1}).narrow(0, 0, n));
}

std::vector<Tensor> nonzero_numpy(const Tensor& t) { return unbind(nonzero(t.dim() ? t : t.unsqueeze(0)), 1); }

void fill_diagonal_(const Tensor& t, const Operand& value, bool wrap) {
  if (t.dim() < 2) throw RuntimeError("dimensions must larger than 1 (fill_diagonal_: got {})", t.dim());
  int64_t step = 0, least = t.size(0);
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.dim() > 2 && t.size(d) != t.size(0))
      throw RuntimeError("all dimensions of input must be of equal length (fill_diagonal_: got {})", t.sizes().str());
    step += t.strides()[static_cast<size_t>(d)];
    least = std::min(least, t.size(d));
  }
  (t.dim() == 2 ? t.diagonal(0, 0, 1) : t.as_strided({least}, {step}, t.storage_offset())).fill_(value);
  // A tall matrix goes on behind a row without one.
  const int64_t rows = t.size(0), columns = t.size(1);
  if (!wrap || t.dim() != 2 || rows <= columns + 1) return;
  const Tensor rest = t.narrow(0, columns + 1, rows - columns - 1);
  for (int64_t first = 0; first < rest.size(0); first += columns + 1)
    rest.narrow(0, first, std::min(columns, rest.size(0) - first)).diagonal(0, 0, 1).fill_(value);
}

Tensor put(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  ops::require_defined(t, "put_", "self"), ops::require_defined(index, "put_", "index"), ops::require_defined(source, "put_", "source");
  if (index.dtype() != DType::I64)
    throw RuntimeError("put_(): Expected a long tensor for index, but got {}", ops::torch_name(index.dtype()));
  if (t.dtype() != source.dtype())
    throw RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
                       ops::torch_name(t.dtype()), ops::torch_name(source.dtype()));
  if (source.numel() != index.numel())
    throw IndexError(
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
        source.numel(), index.numel());
  if (t.numel() == 0 && index.numel() != 0) throw IndexError("put_(): Expected self to be non-empty, or index and source to be empty");
  const Index at[] = {Index(index.reshape({-1}))};
  return index_put(t.reshape({-1}), at, source.reshape({-1}), accumulate).reshape(t.sizes());
}

void put_(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor(t).copy_(put(t, index, source, accumulate));
}

Tensor masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source) {
  ops::require_defined(t, "masked_scatter", "self"), ops::require_defined(mask, "masked_scatter", "mask");
  if (mask.dtype() != DType::Bool)
    throw RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype {}", ops::torch_name(mask.dtype()));
  const Dims shape = broadcast_shapes(t.sizes(), mask.sizes());
  const Tensor out = t.expand(shape).clone(MemoryFormat::Contiguous);
  masked_scatter_(out, mask.expand(shape), source);
  return out;
}

}  // namespace naru
