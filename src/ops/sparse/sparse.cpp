#include "ops/sparse/sparse.h"

#include <algorithm>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/tensor/type_names.h"
#include "runtime/memory/memory.h"

namespace naru {

using autograd::record;
using Tensors = std::vector<Tensor>;

namespace {

void require_coo(const Tensor& t, const char* op) {
  ops::require_defined(t, op, "input");
  if (!is_sparse(t)) throw RuntimeError("{} expected sparse coordinate tensor layout but got {}", op, ops::torch_layout(layout(t)));
}
}  // namespace

Tensor ops::sparse_shell(Ref<ops::SparseParts> parts, const Dims& sizes) {
  if (const DType type = parts->values.dtype(); !in_programs(type) && !is_float8(type) && type != kComplex64 && type != kComplex128)
    throw NotImplementedError(
        "sparse tensors of dtype {} are not supported; integers are to be signed or uint8, complex numbers complex64 or complex128",
        name_of(type));
  const Device device = parts->values.device();
  auto* impl = new TensorImpl(runtime::make_storage(device.is_cpu() ? Device(DeviceType::Cpu, 0) : device, 0), parts->values.dtype());
  Tensor t(impl);
  impl->sizes = sizes;
  impl->strides = Dims(sizes.size(), 0);
  impl->numel = product(sizes);
  impl->contiguous = false;
  impl->origin.op = "sparse";
  impl->set_parts(Ref<LayoutParts>(std::move(parts)), kSparse);
  return t;
}

namespace {

Tensor make_coo(const Tensor& indices, const Tensor& values, const Dims& sizes, bool coalesced) {
  auto parts = make_ref<ops::SparseParts>();
  parts->indices = indices;
  parts->values = values.detach();
  parts->coalesced = coalesced;
  return ops::sparse_shell(std::move(parts), sizes);
}

Dims dense_sizes(const Dims& sizes, int64_t sparse_dims) {
  return Dims(std::span<const int64_t>(sizes).subspan(static_cast<size_t>(sparse_dims)));
}
Dims sparse_sizes(const Dims& sizes, int64_t sparse_dims) {
  return Dims(std::span<const int64_t>(sizes).first(static_cast<size_t>(sparse_dims)));
}

// The gradient's values at a tensor's coordinates.
Tensor gradient_at(const Tensor& g, const Tensor& indices) {
  if (!ops::has_sparse_form(g)) return ops::elements_at(g, indices, g.dim());
  if (ops::parts_of(g).layout == Layout::SparseCoo && ops::parts_of(g).indices.is(indices)) return ops::values_of(g);
  const Tensor own = coalesce(ops::as_coo(g));
  const Tensor values = ops::values_of(own);
  Dims shape(values.sizes());
  shape[0] = indices.size(1);
  if (stored_count(own) == 0) return zeros(shape, Options(g.dtype(), g.device()));
  const Tensor keys = ops::keys_of(ops::parts_of(own).indices, g.sizes()), wanted = ops::keys_of(indices, g.sizes());
  const Tensor at = clamp_max(searchsorted(keys, wanted), Operand(keys.numel() - 1));
  Dims mask(shape.size(), 1);
  mask[0] = shape[0];
  return index_select(values, 0, at) * eq(index_select(keys, 0, at), wanted).to(g.dtype()).view(mask);
}

Tensor integers(const Tensor& t, const char* what) {
  if (!is_integral(t.dtype()) && t.numel() > 0) throw RuntimeError("{} must be an int64 tensor, got torch.{}", what, name_of(t.dtype()));
  return t.detach().to(DType::I64);
}

// Throws PyTorch's error for the first dimension with an index out of range.
void check_coordinates(const Tensor& indices, const Dims& sizes) {
  if (indices.numel() == 0 || indices.device().is_meta()) return;
  const std::vector<int64_t> low = amin(indices, Dims{1}).to_ints(), high = amax(indices, Dims{1}).to_ints();
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] < 0) throw RuntimeError("found negative index {} for dim {}", low[d], d);
    if (high[d] >= sizes[d])
      throw RuntimeError("size is inconsistent with indices: for dim {}, size is {} but found index {}", d, sizes[d], high[d]);
  }
}

}  // namespace

Layout layout(const Tensor& t) { return ops::has_sparse_form(t) ? ops::parts_of(t).layout : Layout::Strided; }
const char* name_of(Layout l) noexcept {
  constexpr const char* kNames[] = {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"};
  return kNames[static_cast<size_t>(l)];
}
const char* ops::torch_layout(Layout l) {
  constexpr const char* kNames[] = {"Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc"};
  return kNames[static_cast<size_t>(l)];
}

namespace ops {

const SparseParts& parts_of(const Tensor& t) { return static_cast<const SparseParts&>(*t.impl()->parts); }

void set_coalesced(const Tensor& t, bool coalesced) {
  if (layout(t) != Layout::SparseCoo)
    throw RuntimeError("_coalesced_ expected sparse coordinate tensor layout but got {}", torch_layout(layout(t)));
  const SparseParts& own = parts_of(t);
  auto parts = make_ref<SparseParts>();
  parts->layout = own.layout, parts->indices = own.indices, parts->values = own.values, parts->coalesced = coalesced;
  t.impl()->set_parts(std::move(parts), kSparse);
}

Tensor keys_of(const Tensor& indices, const Dims& sizes) {
  const int64_t dims = indices.size(0);
  Tensor keys = zeros({indices.size(1)}, Options(DType::I64, indices.device()));
  for (int64_t d = 0; d < dims; ++d)  // a dimension of size 1 adds nothing, and may be broadcast
    if (const int64_t n = sizes[static_cast<size_t>(d)]; n != 1) keys = keys * n + indices.select(0, d);
  return keys;
}

bool rises(const Tensor& keys) {
  const int64_t n = keys.numel();
  return n < 2 || keys.device().is_meta() || all(keys.narrow(0, 1, n - 1) > keys.narrow(0, 0, n - 1)).item().to_bool();
}

Tensor elements_at(const Tensor& dense, const Tensor& indices, int64_t dims) {
  Dims sizes(static_cast<size_t>(dims - dense.dim()), 1);
  for (const int64_t n : dense.sizes()) sizes.push_back(n);
  const int64_t placed = indices.size(0);
  Dims flat = dense_sizes(sizes, placed);
  flat.insert(0, product(sparse_sizes(sizes, placed)));
  return index_select(dense.reshape(flat), 0, keys_of(indices, sizes));
}

Tensor with_values(const Tensor& indices, const Tensor& values, const Dims& sizes, bool coalesced) {
  const Tensor t = make_coo(indices, values, sizes, coalesced);
  return record(
      t, "SparseCooTensorWithDimsAndTensorsBackward0", {&values}, {},
      autograd::WithJvp([own = parts_of(t).indices](const Tensors& g, const Tensors&) -> Tensors { return {gradient_at(g[0], own)}; },
                        [own = t.detach()](const Tensors& t, const Tensors&) { return like_with_values(own, t[0]); }));
}

Tensor coordinates_of(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  return p.layout == Layout::SparseCoo ? p.indices : compressed_coordinates(t);
}

namespace {
// The values of a gradient or tangent of a sparse tensor, dense or sparse itself, at the elements that the tensor stores.
Tensor values_at(const Tensor& g, const Tensor& own) {
  const SparseParts& p = parts_of(own);
  if (has_sparse_form(g) && parts_of(g).layout == p.layout && parts_of(g).indices.is(p.indices)) return values_of(g);
  return gradient_at(g, coordinates_of(own)).reshape(p.values.sizes());
}
}  // namespace

Tensor values_of(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  return record(p.values.detach(), "ValuesBackward0", {&t}, {},
                autograd::WithJvp([t = t.detach()](const Tensors& g, const Tensors&) -> Tensors { return {like_with_values(t, g[0])}; },
                                  [t = t.detach()](const Tensors& along, const Tensors&) { return values_at(along[0], t); }));
}

Tensor like_with_values(const Tensor& t, const Tensor& values) {
  const SparseParts& p = parts_of(t);
  if (p.layout == Layout::SparseCoo) return with_values(p.indices, values, t.sizes(), p.coalesced);
  auto parts = make_ref<SparseParts>();
  parts->layout = p.layout, parts->indices = p.indices, parts->crow = p.crow, parts->values = values.detach(),
  parts->coalesced = p.coalesced;
  const Tensor out = sparse_shell(std::move(parts), t.sizes());
  return record(out, "SparseCompressedTensorBackward0", {&values}, {},
                autograd::WithJvp([own = t.detach()](const Tensors& g, const Tensors&) -> Tensors { return {values_at(g[0], own)}; },
                                  [own = t.detach()](const Tensors& along, const Tensors&) { return like_with_values(own, along[0]); }));
}

Tensor as_coo(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  if (p.layout == Layout::SparseCoo) return t;
  const bool in_order = p.coalesced && form_of(p.layout).rows && block_of(t)[0] == 1;
  return with_values(coordinates_of(t), elements_of(t), t.sizes(), in_order);
}

}  // namespace ops

Tensor sparse_coo_tensor(const Tensor& given, const Tensor& given_values, const OptionalDims& sizes, bool is_coalesced) {
  ops::require_defined(given, "sparse_coo_tensor", "indices");
  ops::require_defined(given_values, "sparse_coo_tensor", "values");
  const Tensor values = given_values.dim() == 0 ? given_values.unsqueeze(0) : given_values;  // a 0-d tensor is one value
  const Tensor indices = integers(given, "indices");
  if (indices.dim() != 2) throw RuntimeError("indices must be sparse_dim x nnz, but got: {}", indices.sizes().str());
  const int64_t dims = indices.size(0), dense = values.dim() - 1;
  if (indices.size(1) != values.size(0))
    throw RuntimeError("indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}", indices.size(1),
                       values.size(0));
  Dims whole;
  if (sizes) {
    whole = *sizes;
    if (static_cast<int64_t>(whole.size()) != dims + dense)
      throw RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {}, dense_dim = {}",
                         whole.size(), dims, dense);
    for (int64_t d = 0; d < dense; ++d)
      if (values.size(d + 1) != whole[static_cast<size_t>(dims + d)])
        throw RuntimeError("values has incorrect size, expected {}, got {}", dense_sizes(whole, dims).str(),
                           dense_sizes(values.sizes(), 1).str());
  } else {
    if (indices.size(1) > 0)
      for (const int64_t last : amax(indices, Dims{1}).to_ints()) whole.push_back(last + 1);
    else
      whole = Dims(static_cast<size_t>(dims), 0);
    for (int64_t d = 0; d < dense; ++d) whole.push_back(values.size(d + 1));
  }
  check_coordinates(indices, whole);
  if (is_coalesced && !ops::rises(ops::keys_of(indices, whole)))
    throw RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
  // Copy the indices: they have been checked, so no other owner may write to them.
  return ops::with_values(indices.to(values.device(), DType::I64, false, true), values, whole, is_coalesced || indices.size(1) < 2);
}

Tensor coalesce(const Tensor& t) {
  require_coo(t, "coalesce");
  const ops::SparseParts& p = ops::parts_of(t);
  if (p.coalesced) return t;
  const Tensor values = ops::values_of(t);
  if (stored_count(t) == 0) return ops::with_values(p.indices, values, t.sizes(), true);
  const auto [keys, places, counts] = unique(ops::keys_of(p.indices, t.sizes()));
  std::vector<Tensor> columns(static_cast<size_t>(p.indices.size(0)));
  Tensor rest = keys;
  for (size_t d = columns.size(); d-- > 0;) {
    const int64_t size = t.sizes()[d];
    columns[d] = remainder(rest, Operand(size));
    rest = floor_divide(rest, Operand(size));
  }
  Dims shape = values.sizes();
  shape[0] = keys.numel();
  const Tensor indices = columns.empty() ? zeros({0, keys.numel()}, Options(DType::I64, t.device())) : stack(columns);
  const Tensor sums = index_add(zeros(shape, Options(values.dtype(), values.device())), 0, places, values);
  return ops::with_values(indices, sums, t.sizes(), true);
}

bool is_coalesced(const Tensor& t) {
  require_coo(t, "is_coalesced");
  return ops::parts_of(t).coalesced;
}
Tensor sparse_indices(const Tensor& t) {
  require_coo(t, "indices");
  if (!is_coalesced(t)) throw RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return ops::parts_of(t).indices;
}
Tensor sparse_values(const Tensor& t) {
  ops::require_defined(t, "values", "input");
  if (!ops::has_sparse_form(t)) throw RuntimeError("values expected sparse tensor layout but got Strided");
  if (is_sparse(t) && !ops::parts_of(t).coalesced)
    throw RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return ops::values_of(t);
}
Tensor raw_indices(const Tensor& t) {
  require_coo(t, "_indices");
  return ops::parts_of(t).indices;
}
Tensor raw_values(const Tensor& t) {
  require_coo(t, "_values");
  return ops::parts_of(t).values;
}
int64_t stored_count(const Tensor& t) {
  if (!ops::has_sparse_form(t))
    throw NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend. (only sparse tensors have it)");
  return ops::parts_of(t).indices.size(-1);
}
int64_t sparse_dim(const Tensor& t) {
  const Layout l = layout(t);
  return l == Layout::Strided ? 0 : is_compressed(t) ? 2 : ops::parts_of(t).indices.size(0);
}
int64_t dense_dim(const Tensor& t) {
  if (!ops::has_sparse_form(t)) return t.dim();
  return t.dim() - sparse_dim(t) - (is_compressed(t) ? ops::batch_dims(t) : 0);
}

Tensor to_dense(const Tensor& t) {
  ops::require_defined(t, "to_dense", "input");
  if (!ops::has_sparse_form(t)) return t;
  const Tensor values = ops::elements_of(t), indices = ops::coordinates_of(t);
  Dims flat = values.sizes();
  flat[0] = product(sparse_sizes(t.sizes(), indices.size(0)));
  const Tensor target = zeros(flat, Options(values.dtype(), values.device()));
  if (values.numel() == 0 && !values.requires_grad()) return target.view(t.sizes());
  return index_add(target, 0, ops::keys_of(indices, t.sizes()), values).view(t.sizes());
}

Tensor to_sparse(const Tensor& t, std::optional<int64_t> sparse_dims) {
  ops::require_defined(t, "to_sparse", "input");
  if (ops::has_sparse_form(t)) {
    if (sparse_dims && *sparse_dims != sparse_dim(t))
      throw RuntimeError(
          "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported (it has {})",
          sparse_dim(t));
    return ops::as_coo(t);
  }
  const int64_t dims = sparse_dims.value_or(t.dim());
  if (dims < std::min<int64_t>(1, t.dim()) || dims > t.dim()) throw RuntimeError("sparse_dim must be in [1, {}], got {}", t.dim(), dims);
  Tensor stored = ne(t.detach(), 0);
  for (int64_t d = t.dim() - 1; d >= dims; --d) stored = any(stored, Dims{d});
  const Tensor indices = nonzero(stored).t().contiguous();
  return ops::with_values(indices, ops::elements_at(t, indices, t.dim()), t.sizes(), true);
}

Tensor sparse_mask(const Tensor& t, const Tensor& mask) {
  ops::require_defined(t, "sparse_mask", "input");
  ops::require_defined(mask, "sparse_mask", "mask");
  if (!ops::has_sparse_form(mask)) throw RuntimeError("sparse_mask expected a sparse mask but got layout torch.{}", name_of(layout(mask)));
  if (!(t.sizes() == mask.sizes()))
    throw RuntimeError("sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}", t.sizes().str(),
                       mask.sizes().str());
  return ops::like_with_elements(mask, gradient_at(t, ops::coordinates_of(mask)));
}

Tensor sparse_zeros(const Dims& sizes, Layout wanted, const Options& o) {
  const Options values(o.dtype.value_or(default_dtype()), o.device.value_or(default_device())), places(DType::I64, *values.device);
  const auto dims = static_cast<int64_t>(sizes.size());
  for (const int64_t n : sizes)
    if (n < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: {}", n, sizes.str());
  const auto finished = [&](const Tensor& t) { return o.requires_grad ? t.requires_grad_() : t; };
  if (wanted == Layout::SparseCoo) return finished(ops::with_values(zeros({dims, 0}, places), zeros({0}, values), sizes, true));
  if (wanted == Layout::Strided) return zeros(sizes, o);
  const ops::CompressedForm& f = ops::form_of(wanted);
  if (f.blocks)
    throw RuntimeError("empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {}",
                       ops::torch_layout(wanted));
  if (dims < 2)
    throw RuntimeError("torch.zeros: Only batched sparse compressed (non-block) tensors are supported, but got size {}", sizes.str());
  Dims lines = sizes, none = sizes;
  lines.erase(lines.size() - (f.rows ? 1 : 2)), none.erase(none.size() - 1);
  lines.back() += 1, none.back() = 0;
  return finished(sparse_compressed_tensor(zeros(lines, places), zeros(none, places), zeros(none, values), sizes, wanted));
}

}  // namespace naru
