// The internals of sparse tensors, and the entry points to which operators on dense tensors dispatch them. Every other access to elements (views,
// instructions, memory) rejects sparse tensors: their dtype is a sparse form that nothing computes with (dtype.h).
#pragma once

#include <array>
#include <span>

#include "ir/program.h"
#include "naru/ops/sparse.h"
#include "ops/batch/batch.h"
#include "ops/tensor/common.h"

namespace naru::ops {

struct SparseParts final : LayoutParts {
  Layout layout = Layout::SparseCoo;
  Tensor indices;  // COO: (dimensions, stored). Compressed: (batches ..., stored), the column or row indices
  Tensor crow;     // compressed: (batches ..., rows or columns + 1), where each row or column begins
  Tensor
      values;  // (stored, dense dimensions ...); compressed: (batches ..., stored, [a block's two,] dense dimensions ...); without history
  bool coalesced = false;  // each coordinate occurs once, in row-major order; compressed: once in its row or column, in order
};
const SparseParts& parts_of(const Tensor& t);
// Sets the flag of a COO tensor without a check.
void set_coalesced(const Tensor& t, bool coalesced);

inline bool has_sparse_form(const Tensor& t) noexcept { return t.defined() && (t.impl()->special & kSparse) != 0; }

// Makes a differentiable COO tensor from parts that need no check. `values` may have a history; values_of returns them with it.
Tensor with_values(const Tensor& indices, const Tensor& values, const Dims& sizes, bool coalesced);
Tensor like_with_values(const Tensor& t, const Tensor& values);  // same coordinates and layout as t
Tensor values_of(const Tensor& t);
// The COO coordinates of a tensor in any layout, and the elements at them, (stored, dense dimensions ...).
Tensor coordinates_of(const Tensor& t);
Tensor elements_of(const Tensor& t);
Tensor like_with_elements(const Tensor& t, const Tensor& elements);
Tensor as_coo(const Tensor& t);
// Applies f to the values. f must map 0 to 0. If f is not additive, equal coordinates must be summed first, so COO tensors are coalesced.
template <class F>
Tensor map_stored(const Tensor& t, F f) {
  const Tensor own = is_compressed(t) ? t : coalesce(t);
  return like_with_values(own, f(values_of(own)));
}
// Makes a sparse tensor without history from parts that need no check.
Tensor sparse_shell(Ref<SparseParts> parts, const Dims& sizes);
const char* torch_layout(Layout layout);  // "SparseCsr"

// A compressed layout: whether rows (or columns) are compressed, whether it stores blocks, and PyTorch's names of its parts and of what they count.
struct CompressedForm {
  bool rows, blocks;
  const char *compressed, *plain, *along, *count, *across;
};
const CompressedForm& form_of(Layout layout);
int64_t batch_dims(const Tensor& t);
std::array<int64_t, 2> block_of(const Tensor& t);  // (1, 1) if the layout has no blocks
Tensor compressed_coordinates(const Tensor& t);
// True if the plain indices increase within each row (column).
bool rises_in_lines(const Tensor& compressed, const Tensor& plain, int64_t across);
// Converts a COO tensor with batches + 2 sparse dimensions to a compressed layout with indices of type `integers`. RuntimeError if the batches store
// different numbers of elements, or if the blocks do not divide the matrix.
Tensor compressed(const Tensor& coo, Layout layout, int64_t batches, std::array<int64_t, 2> block, DType integers = DType::I64);
// The same in t's layout if t is compressed; else returns `coo` unchanged.
Tensor in_layout_of(const Tensor& coo, const Tensor& t);
Tensor compressed_to(const Tensor& t, Device device, const Tensor& values);
Tensor compressed_permute(const Tensor& t, const Dims& order);
Tensor compressed_select(const Tensor& t, int64_t d, int64_t index);  // along a batch or a dense dimension
// The elements of a dense tensor at the coordinates, (stored, dense dimensions ...). `dense` is broadcast to `dims` dimensions: it may have fewer, or
// sizes of 1.
Tensor elements_at(const Tensor& dense, const Tensor& indices, int64_t dims);
// One integer key for each column of coordinates, in row-major order.
Tensor keys_of(const Tensor& indices, const Dims& sizes);
bool rises(const Tensor& keys);

// Runs an elementwise operator with at least one sparse operand.
Tensor run_sparse(ir::OpId id, std::span<const Operand> operands);
void run_sparse_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);
Tensor sparse_to(const Tensor& t, Device device, DType dtype, bool copy);
Tensor sparse_clone(const Tensor& t);
Tensor sparse_transpose(const Tensor& t, int64_t a, int64_t b);
Tensor sparse_permute(const Tensor& t, const Dims& order);
Tensor empty_sparse_like(const Tensor& t);  // an empty sparse tensor like t, without history
void sparse_zero_(const Tensor& t);
void sparse_fill_(const Tensor& t, const Operand& value);  // fills the stored elements; compressed layouts only
// Broadcasts by repeating the stored elements; COO only.
Tensor sparse_broadcast_to(const Tensor& t, const Dims& sizes);
// For COO tensors. sparse_select supports compressed tensors too; the others throw an error that names the operator.
Tensor sparse_cat(const std::vector<Tensor>& tensors, int64_t dim);
Tensor sparse_unsqueeze(const Tensor& t, int64_t dim);
Tensor sparse_select(const Tensor& t, int64_t dim, int64_t index);  // dense if the only sparse dimension is removed
Tensor sparse_index_select(const Tensor& t, int64_t dim, const Tensor& index);
Tensor sparse_narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length);
Tensor sparse_sum(const Tensor& t, std::optional<DType> dtype);  // over all elements; the gradient is dense
Tensor sparse_sum_keeping(const Tensor& t, const OptionalDims& dims, std::optional<DType> dtype);
Tensor sparse_norm(const Tensor& t, double p, const OptionalDims& dims);
// Replaces t's parts and sizes with those of `made`. RuntimeError if one of them has a history.
void take_parts(const Tensor& t, const Tensor& made, const char* op);
void sparse_copy_(const Tensor& t, const Tensor& source);
inline bool any_sparse(const std::vector<Tensor>& tensors) noexcept {
  for (const Tensor& t : tensors)
    if (has_sparse_form(t)) return true;
  return false;
}
// Adds gradients of which at least one is sparse.
Tensor add_gradients(const Tensor& a, const Tensor& b);

// NotImplementedError with PyTorch's text.
[[noreturn]] void throw_no_sparse(const char* op, const Tensor& t);
// The same, or NoBatchingRule: for what needs elements of the tensor's own.
[[noreturn]] void throw_parts(const char* op, const Tensor& t);
inline void refuse_parts(const Tensor& t, const char* op) {
  if (have_parts(t)) [[unlikely]]
    throw_parts(op, t);
}

// NotImplementedError with PyTorch's text: a sparse tensor has no storage of its own.
inline void require_storage(const Tensor& t) {
  if (is_batched(t)) [[unlikely]]
    throw batching::NoBatchingRule("the storage");
  if (has_sparse_form(t)) [[unlikely]]
    throw NotImplementedError("Cannot access storage of Sparse{}TensorImpl", is_compressed(t) ? "Csr" : "");
}

}  // namespace naru::ops
