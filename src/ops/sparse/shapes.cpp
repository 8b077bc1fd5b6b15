// Shape operators of sparse tensors (cat, unsqueeze, select, index_select, narrow_copy, permute), reductions, and in-place writes that change which
// elements are stored. Each computes new coordinates, and selects the values with differentiable operators.
#include <algorithm>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/sparse/sparse.h"

namespace naru::ops {
namespace {

Options integers(const Tensor& t) { return Options(DType::I64, t.device()); }

// The coordinates with row d replaced by `row`, or without row d if `row` is undefined.
Tensor with_row(const Tensor& indices, int64_t d, const Tensor& row) {
  std::vector<Tensor> rows;
  for (int64_t k = 0; k < indices.size(0); ++k)
    if (k != d || row.defined()) rows.push_back(k == d ? row : indices.select(0, k));
  return stack(rows);
}

// The coordinates of the stored elements with the given indices.
Tensor stored_at(const Tensor& indices, const Tensor& numbers) { return index_select(indices, 1, numbers); }

void check_parts(const std::vector<Tensor>& tensors, int64_t dim) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!is_sparse(tensors[i])) {
      if (has_sparse_form(tensors[i])) throw_no_sparse("cat", tensors[i]);
      throw RuntimeError("Concatenating sparse tensors, but a dense tensor was found at position {}.", i);
    }
  const Tensor& model = tensors[0];
  for (size_t i = 1; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    Dims sizes = t.sizes();
    if (t.dim() == model.dim()) sizes[static_cast<size_t>(dim)] = model.size(dim);
    if (!(sizes == model.sizes()))
      throw RuntimeError(
          "All tensors must have the same shape: {} (except in the concatenating dimension), but found shape: {} at position {}.",
          model.sizes().str(), t.sizes().str(), i);
    if (sparse_dim(t) != sparse_dim(model))
      throw RuntimeError("All tensors must have the same sparse_dim and dense_dim: {}, {}, but tensor at position {} has {}, {}.",
                         sparse_dim(model), dense_dim(model), i, sparse_dim(t), dense_dim(t));
  }
}

}  // namespace

Tensor sparse_cat(const std::vector<Tensor>& tensors, int64_t given_dim) {
  // If the first tensor is not COO, the error names the layout of the first sparse one. check_parts compares the others with the first tensor.
  if (!is_sparse(tensors[0])) {
    const auto sparse = std::find_if(tensors.begin(), tensors.end(), [](const Tensor& t) { return has_sparse_form(t); });
    throw_no_sparse("cat", *sparse);
  }
  const int64_t dim = wrap_dim(given_dim, tensors[0].dim()), dims = sparse_dim(tensors[0]);
  check_parts(tensors, dim);
  Dims sizes = tensors[0].sizes();
  DType type = tensors[0].dtype();
  int64_t total = 0;
  for (const Tensor& t : tensors) type = promote(type, t.dtype()), total += t.size(dim);
  sizes[static_cast<size_t>(dim)] = total;
  std::vector<Tensor> indices, values;
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    const Tensor own = parts_of(t).indices;
    Tensor v = values_of(t).to(type);
    if (dim < dims) {
      indices.push_back(with_row(own, dim, own.select(0, dim) + start));
    } else {
      indices.push_back(own);
      const auto none = [&](int64_t n) {
        Dims shape = v.sizes();
        shape[static_cast<size_t>(dim - dims + 1)] = n;
        return zeros(shape, Options(type, v.device()));
      };
      v = cat({none(start), v, none(total - start - t.size(dim))}, dim - dims + 1);
    }
    values.push_back(v);
    start += t.size(dim);
  }
  return with_values(cat(indices, 1), cat(values), sizes, false);
}

Tensor sparse_unsqueeze(const Tensor& t, int64_t given_dim) {
  if (is_compressed(t)) throw_no_sparse("unsqueeze", t);
  const SparseParts& p = parts_of(t);
  const int64_t d = wrap_dim(given_dim, t.dim() + 1), dims = p.indices.size(0);
  Dims sizes = t.sizes();
  sizes.insert(static_cast<size_t>(d), 1);
  if (d > dims) return with_values(p.indices, values_of(t).unsqueeze(d - dims + 1), sizes, p.coalesced);
  const Tensor row = zeros({1, p.indices.size(1)}, integers(p.indices));
  const Tensor indices = cat({p.indices.narrow(0, 0, d), row, p.indices.narrow(0, d, dims - d)}, 0);
  return with_values(indices, values_of(t), sizes, p.coalesced);
}

Tensor sparse_select(const Tensor& given, int64_t given_dim, int64_t given_index) {
  const int64_t d = wrap_dim(given_dim, given.dim()), n = given.size(d);
  if (given_index < -n || given_index >= n)
    throw IndexError("select(): index {} out of range for tensor of size {} at dimension {}", given_index, given.sizes().str(), d);
  const int64_t index = given_index < 0 ? given_index + n : given_index;
  const bool in_matrix = is_compressed(given) && d >= batch_dims(given) && d < batch_dims(given) + 2;
  if (is_compressed(given) && !in_matrix) return compressed_select(given, d, index);
  const Tensor t = in_matrix ? coalesce(as_coo(given)) : given;
  const SparseParts& p = parts_of(t);
  const int64_t dims = p.indices.size(0);
  Dims sizes = t.sizes();
  sizes.erase(static_cast<size_t>(d));
  if (d >= dims) return with_values(p.indices, values_of(t).select(d - dims + 1, index), sizes, p.coalesced);
  const Tensor there = nonzero(eq(p.indices.select(0, d), Operand(index))).view({-1});
  const Tensor values = index_select(values_of(t), 0, there);
  if (dims == 1) return sum(values, Dims{0}, false, t.dtype());
  return with_values(with_row(stored_at(p.indices, there), d, {}), values, sizes, p.coalesced);
}

namespace {

// Finds, for each element of `wanted` in order, the stored elements whose coordinate in `row` equals it. Returns two index vectors with an entry for
// each match: into `wanted`, and into the stored elements.
std::pair<Tensor, Tensor> matches(const Tensor& row, const Tensor& wanted) {
  const auto [sorted, order] = sort(row, 0);
  const Tensor begins = searchsorted(sorted, wanted), counts = searchsorted(sorted, wanted, false, true) - begins;
  const Tensor from = repeat_interleave(arange(0, wanted.numel(), 1, integers(row)), counts);
  const Tensor first = cumsum(counts, 0) - counts - begins;
  const Tensor at = arange(0, from.numel(), 1, integers(row)) - index_select(first, 0, from);
  return {from, index_select(order, 0, at)};
}

}  // namespace

Tensor sparse_index_select(const Tensor& t, int64_t given_dim, const Tensor& index) {
  if (is_compressed(t)) throw_no_sparse("index_select", t);
  if (index.dim() != 1 || has_sparse_form(index) || !is_integral(index.dtype()) || index.dtype() == DType::Bool)
    throw IndexError("index_select() argument index must be 1-D strided (non-sparse) long-tensor.");
  const SparseParts& p = parts_of(t);
  const int64_t d = wrap_dim(given_dim, t.dim()), dims = p.indices.size(0), n = t.size(d);
  const Tensor places = index.to(DType::I64);
  for (const int64_t i : places.to_ints())
    if (i < -n || i >= n)
      throw IndexError("index_select(): index contains {} that is out of range for tensor of size {} at dimension {}", i, t.sizes().str(),
                       d);
  const Tensor wanted = where(lt(places, 0), places + n, places);
  Dims sizes = t.sizes();
  sizes[static_cast<size_t>(d)] = index.numel();
  if (d >= dims) return with_values(p.indices, index_select(values_of(t), d - dims + 1, wanted), sizes, p.coalesced);
  const auto [from, numbers] = matches(p.indices.select(0, d), wanted);
  return with_values(with_row(stored_at(p.indices, numbers), d, from), index_select(values_of(t), 0, numbers), sizes, false);
}

Tensor sparse_narrow_copy(const Tensor& t, int64_t given_dim, int64_t start, int64_t length) {
  if (is_compressed(t)) throw_no_sparse("narrow_copy", t);
  const SparseParts& p = parts_of(t);
  const int64_t d = wrap_dim(given_dim, t.dim()), dims = p.indices.size(0), n = t.size(d);
  if (start < 0 || length < 0 || start > n || length > n - start)
    throw RuntimeError(
        "Invalid range to narrow. range(start, start+length) must be a subset of range(0, {}). (narrow_copy: start {}, length {})", n,
        start, length);
  Dims sizes = t.sizes();
  sizes[static_cast<size_t>(d)] = length;
  if (d >= dims) return with_values(p.indices, values_of(t).narrow(d - dims + 1, start, length).clone(), sizes, p.coalesced);
  const Tensor row = p.indices.select(0, d);
  const Tensor there = nonzero(logical_and(ge(row, Operand(start)), lt(row, Operand(start + length)))).view({-1});
  const Tensor indices = stored_at(p.indices, there);
  return with_values(with_row(indices, d, indices.select(0, d) - start), index_select(values_of(t), 0, there), sizes, p.coalesced);
}

// Sparse and dense dimensions may each be permuted among themselves; in compressed layouts the batch, the matrix and the dense dimensions.
Tensor sparse_permute(const Tensor& t, const Dims& order) {
  if (is_compressed(t)) return compressed_permute(t, order);
  const SparseParts& p = parts_of(t);
  const int64_t dims = p.indices.size(0);
  std::vector<int64_t> rows;
  Dims sizes, inner{0};
  bool same = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    if ((d < dims) != (static_cast<int64_t>(i) < dims))
      throw RuntimeError("transpose(): one of the dimensions {} and {} is sparse and the other is not", i, d);
    sizes.push_back(t.size(d));
    d < dims ? rows.push_back(d) : inner.push_back(d - dims + 1);
    same = same && (d >= dims || d == static_cast<int64_t>(i));
  }
  const Tensor indices = same ? p.indices : index_select(p.indices, 0, tensor(rows, integers(t)));
  return with_values(indices, inner.size() > 1 ? values_of(t).permute(inner) : values_of(t), sizes, same && p.coalesced);
}

Tensor sparse_broadcast_to(const Tensor& given, const Dims& sizes) {
  const Tensor t = as_coo(given);
  if (t.sizes() == sizes) return t;
  const SparseParts& p = parts_of(t);
  const auto dims = static_cast<size_t>(p.indices.size(0)), extra = sizes.size() - t.sizes().size();
  const Options integer = integers(t);
  Tensor places = cat({zeros({static_cast<int64_t>(extra), p.indices.size(1)}, integer), p.indices}, 0), values = values_of(t);
  for (size_t d = 0; d < dims + extra; ++d) {
    const int64_t n = sizes[d];
    if ((d < extra ? 1 : t.size(static_cast<int64_t>(d - extra))) == n) continue;
    const int64_t stored = places.size(1);
    const Tensor which = arange(0, n * stored, 1, integer), entry = remainder(which, Operand(std::max<int64_t>(stored, 1)));
    places = with_row(index_select(places, 1, entry), static_cast<int64_t>(d), floor_divide(which, Operand(std::max<int64_t>(stored, 1))));
    values = index_select(values, 0, entry);
  }
  Dims inner{values.size(0)};
  for (size_t d = dims + extra; d < sizes.size(); ++d) inner.push_back(sizes[d]);
  return with_values(places, values.expand(inner).contiguous(), sizes, false);
}

Tensor sparse_sum(const Tensor& t, std::optional<DType> dtype) {
  const auto expanded = [sizes = t.sizes(), type = t.dtype()](const std::vector<Tensor>& g,
                                                              const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {g[0].defined() ? g[0].to(type).expand(sizes) : Tensor()};
  };
  return autograd::record(sum(values_of(t).detach(), std::nullopt, false, dtype), "SumBackward0", {&t}, {},
                          autograd::WithJvp(expanded, [dtype](const std::vector<Tensor>& along, const std::vector<Tensor>&) {
                            return sparse_sum(along[0], dtype);
                          }));
}

Tensor sparse_sum_keeping(const Tensor& t, const OptionalDims& dims, std::optional<DType> dtype) {
  Dims all;
  for (int64_t d = 0; d < t.dim(); ++d) all.push_back(d);
  if (is_compressed(t) && form_of(parts_of(t).layout).blocks)
    throw RuntimeError("Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout {}",
                       torch_layout(layout(t)));
  Dims gone = dims && !dims->empty() ? *dims : all;
  for (int64_t& d : gone) d = wrap_dim(d, t.dim());
  std::sort(gone.begin(), gone.end());
  Tensor out = sparse::sum(t, gone, dtype);
  for (const int64_t d : gone) out = out.unsqueeze(d);
  return in_layout_of(out, t);
}

Tensor sparse_norm(const Tensor& t, double p, const OptionalDims& dims) {
  if (dims && !dims->empty() && static_cast<int64_t>(dims->size()) != t.dim())
    throw RuntimeError(
        "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of the input");
  return norm(values_of(is_compressed(t) ? t : coalesce(t)), p);
}

Tensor empty_sparse_like(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  auto parts = make_ref<SparseParts>();
  parts->layout = p.layout, parts->coalesced = true;
  if (p.crow.defined()) parts->crow = zeros_like(p.crow);
  parts->indices = p.indices.narrow(p.indices.dim() - 1, 0, 0).clone();
  parts->values = p.values.narrow(p.crow.defined() ? batch_dims(t) : 0, 0, 0).clone();
  return sparse_shell(std::move(parts), t.sizes());
}

void sparse_zero_(const Tensor& t) { take_parts(t, empty_sparse_like(t), "zero_"); }

void sparse_fill_(const Tensor& t, const Operand& value) {
  if (!is_compressed(t)) throw_no_sparse("fill_", t);
  take_parts(t, like_with_values(t.detach(), parts_of(t).values.clone().fill_(value)), "fill_");
}

void take_parts(const Tensor& t, const Tensor& made, const char* op) {
  if (autograd::recording_write(t) || autograd::recording({&t}) || autograd::recording({&made}))
    throw RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation. ({}: sparse tensors with a history are not written in "
        "place: use the operator that returns a new one)",
        op);
  autograd::before_write(t);
  TensorImpl& impl = *t.impl();
  impl.set_dtype(made.impl()->dtype);
  impl.set_parts(made.impl()->parts, kSparse);
  impl.sizes = made.sizes(), impl.strides = made.strides(), impl.numel = made.numel();
  bump_version(t);
}

void sparse_copy_(const Tensor& t, const Tensor& source) {
  if (!has_sparse_form(t) || !has_sparse_form(source) || layout(t) != layout(source))
    throw RuntimeError(
        "copy_() between dense and sparse Tensors is not implemented! Found self of layout torch.{} and src of layout torch.{}",
        name_of(layout(t)), name_of(layout(source)));
  if (!(t.sizes() == source.sizes()) || sparse_dim(t) != sparse_dim(source))
    throw RuntimeError("copy_: wanted a sparse tensor of size {} with {} sparse dimensions, got size {} with {}", t.sizes().str(),
                       sparse_dim(t), source.sizes().str(), sparse_dim(source));
  take_parts(t, sparse_to(source, t.device(), t.dtype(), true), "copy_");
}

}  // namespace naru::ops

namespace naru {
namespace {

void require_resizable(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims, const char* op) {
  ops::require_defined(t, op, "input");
  if (!is_sparse(t))
    throw NotImplementedError("Could not run 'aten::{}' with arguments from the '{}' layout; it is of sparse_coo tensors", op,
                              name_of(layout(t)));
  if (sparse_dims < 0 || dense_dims < 0 || sparse_dims + dense_dims != static_cast<int64_t>(sizes.size()))
    throw RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {}, dense_dim = {}",
                       sizes.size(), sparse_dims, dense_dims);
  for (const int64_t n : sizes)
    if (n < 0) throw RuntimeError("{}: wanted sizes that are not negative, got {}", op, sizes.str());
}

Dims part_of(const Dims& sizes, int64_t from, int64_t to) {
  return Dims(std::span<const int64_t>(sizes).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
}

}  // namespace

void sparse_resize_and_clear_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims) {
  require_resizable(t, sizes, sparse_dims, dense_dims, "sparse_resize_and_clear_");
  Dims none = part_of(sizes, sparse_dims, sparse_dims + dense_dims);
  none.insert(0, 0);
  const Tensor values = zeros(none, Options(t.dtype(), t.device())), indices = zeros({sparse_dims, 0}, Options(DType::I64, t.device()));
  ops::take_parts(t, ops::with_values(indices, values, sizes, true), "sparse_resize_and_clear_");
}

void sparse_resize_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims) {
  require_resizable(t, sizes, sparse_dims, dense_dims, "sparse_resize_");
  if (stored_count(t) == 0) return sparse_resize_and_clear_(t, sizes, sparse_dims, dense_dims);
  const int64_t old_dims = sparse_dim(t);
  if (old_dims != sparse_dims || dense_dim(t) != dense_dims)
    throw RuntimeError(
        "changing the number of {} dimensions (from {} to {}) on a non-empty sparse tensor is not supported. "
        "(sparse_resize_and_clear_ empties it first)",
        old_dims != sparse_dims ? "sparse" : "dense", old_dims != sparse_dims ? old_dims : dense_dim(t),
        old_dims != sparse_dims ? sparse_dims : dense_dims);
  for (int64_t d = 0; d < t.dim(); ++d)
    if (sizes[static_cast<size_t>(d)] < t.size(d)) {
      const int64_t from = d < old_dims ? 0 : old_dims, to = d < old_dims ? old_dims : t.dim();
      throw RuntimeError(
          "shrinking the size of {} dimensions (from {} to {}) on a non-empty sparse tensor is not supported. "
          "(sparse_resize_and_clear_ empties it first)",
          d < old_dims ? "sparse" : "dense", part_of(t.sizes(), from, to).str(), part_of(sizes, from, to).str());
    }
  const NoGrad off;
  const ops::SparseParts& p = ops::parts_of(t);
  Tensor values = p.values;
  Dims inner = part_of(sizes, sparse_dims, t.dim());
  inner.insert(0, values.size(0));
  if (!(inner == values.sizes())) {
    Tensor wide = zeros(inner, Options(t.dtype(), t.device())), room = wide;
    for (int64_t d = 1; d < values.dim(); ++d) room = room.narrow(d, 0, values.size(d));
    room.copy_(values);
    values = wide;
  }
  ops::take_parts(t, ops::with_values(p.indices, values, sizes, p.coalesced), "sparse_resize_");
}

void resize_as_sparse_(const Tensor& t, const Tensor& model) {
  ops::require_defined(model, "resize_as_sparse_", "the_template");
  if (!(t.sizes() == model.sizes() && sparse_dim(t) == sparse_dim(model)))
    sparse_resize_(t, model.sizes(), sparse_dim(model), dense_dim(model));
}

}  // namespace naru
