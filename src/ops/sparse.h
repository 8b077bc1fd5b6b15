// Sparse tensors within operators: what they are made of, and where operators of dense tensors hand them over. Every other way to elements (views,
// instructions, memory) refuses them, since their dtype is a form that nothing computes with (dtype.h).
#pragma once

#include <array>
#include <span>

#include "ir/program.h"
#include "naru/sparse.h"
#include "ops/common.h"

namespace naru::ops {

struct SparseParts final : LayoutParts {
  Layout layout = Layout::SparseCoo;
  Tensor indices;  // COO: (dimensions, stored); compressed: (batches ..., stored), the columns or rows
  Tensor crow;     // compressed: (batches ..., rows or columns + 1), where they begin
  Tensor
      values;  // (stored, dense dimensions ...); compressed: (batches ..., stored, [a block's two,] dense dimensions ...); without history
  bool coalesced = false;  // each coordinate once, in row-major order; compressed: each once in its row or column, in order
};
const SparseParts& parts_of(const Tensor& t);
// Says so of a COO tensor, unseen.
void set_coalesced(const Tensor& t, bool coalesced);

inline bool has_sparse_form(const Tensor& t) noexcept { return t.defined() && is_sparse_form(t.impl()->dtype); }

// A differentiable COO tensor of parts that need no check, and its values with history.
Tensor with_values(const Tensor& indices, const Tensor& values, const Dims& sizes, bool coalesced);
Tensor like_with_values(const Tensor& t, const Tensor& values);  // the same coordinates and layout
Tensor values_of(const Tensor& t);
// The coordinates as a COO tensor has them, of any layout, and the elements that belong to them, (stored, dense dimensions ...).
Tensor coordinates_of(const Tensor& t);
Tensor elements_of(const Tensor& t);
Tensor like_with_elements(const Tensor& t, const Tensor& elements);
Tensor as_coo(const Tensor& t);
// f of the values, for an f that keeps 0 and is none of sums: equal coordinates are added up first.
template <class F>
Tensor map_stored(const Tensor& t, F f) {
  const Tensor own = is_compressed(t) ? t : coalesce(t);
  return like_with_values(own, f(values_of(own)));
}
// A sparse tensor of parts that need no check, without history.
Tensor sparse_shell(Ref<SparseParts> parts, const Dims& sizes);
const char* torch_layout(Layout layout);  // "SparseCsr"

// A compressed layout: what is compressed, whether it is blocks that are stored, and PyTorch's names of the parts and of what they count.
struct CompressedForm {
  bool rows, blocks;
  const char *compressed, *plain, *along, *count, *across;
};
const CompressedForm& form_of(Layout layout);
int64_t batch_dims(const Tensor& t);
std::array<int64_t, 2> block_of(const Tensor& t);  // (1, 1) where there are none
Tensor compressed_coordinates(const Tensor& t);
// Whether the plain indices rise within each row (column).
bool rises_in_lines(const Tensor& compressed, const Tensor& plain, int64_t across);
// A COO tensor of batches + 2 sparse dimensions in a compressed layout, its indices of the type `integers`. RuntimeError where batches store unequally
// much, or blocks do not fit.
Tensor compressed(const Tensor& coo, Layout layout, int64_t batches, std::array<int64_t, 2> block, DType integers = DType::I64);
// The same, as t is compressed; as it is where t is not.
Tensor in_layout_of(const Tensor& coo, const Tensor& t);
Tensor compressed_to(const Tensor& t, Device device, const Tensor& values);
Tensor compressed_permute(const Tensor& t, const Dims& order);
Tensor compressed_select(const Tensor& t, int64_t d, int64_t index);  // of a batch or a dense dimension
// The elements of a dense tensor at coordinates, (stored, dense dimensions ...): of one that is broadcast to `dims` dimensions, where it has fewer or of size 1.
Tensor elements_at(const Tensor& dense, const Tensor& indices, int64_t dims);
// One number for each column of coordinates.
Tensor keys_of(const Tensor& indices, const Dims& sizes);
bool rises(const Tensor& keys);

// An operator of the table over operands of which one is sparse.
Tensor run_sparse(ir::OpId id, std::span<const Operand> operands);
void run_sparse_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);
Tensor sparse_to(const Tensor& t, Device device, DType dtype, bool copy);
Tensor sparse_clone(const Tensor& t);
Tensor sparse_transpose(const Tensor& t, int64_t a, int64_t b);
Tensor sparse_permute(const Tensor& t, const Dims& order);
Tensor none_stored_like(const Tensor& t);  // without history
void sparse_zero_(const Tensor& t);
void sparse_fill_(const Tensor& t, const Operand& value);  // of what is stored; of compressed layouts only
// The same elements, repeated; COO.
Tensor sparse_broadcast_to(const Tensor& t, const Dims& sizes);
// Of COO tensors; compressed ones are selected from, and refused by name elsewhere.
Tensor sparse_cat(const std::vector<Tensor>& tensors, int64_t dim);
Tensor sparse_unsqueeze(const Tensor& t, int64_t dim);
Tensor sparse_select(const Tensor& t, int64_t dim, int64_t index);  // dense where the only sparse dimension goes
Tensor sparse_index_select(const Tensor& t, int64_t dim, const Tensor& index);
Tensor sparse_narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length);
Tensor sparse_sum(const Tensor& t, std::optional<DType> dtype);  // of all elements, whose gradients are those of a dense tensor
Tensor sparse_sum_keeping(const Tensor& t, const OptionalDims& dims, std::optional<DType> dtype);
Tensor sparse_norm(const Tensor& t, double p, const OptionalDims& dims);
// t becomes what `made` is, sizes and all. RuntimeError where one of both has a history.
void take_parts(const Tensor& t, const Tensor& made, const char* op);
void sparse_copy_(const Tensor& t, const Tensor& source);
inline bool any_sparse(const std::vector<Tensor>& tensors) noexcept {
  for (const Tensor& t : tensors)
    if (has_sparse_form(t)) return true;
  return false;
}
// Sums of gradients, of which some are sparse.
Tensor add_gradients(const Tensor& a, const Tensor& b);

// NotImplementedError in PyTorch's words.
[[noreturn]] void throw_no_sparse(const char* op, const Tensor& t);
inline void refuse_sparse(const Tensor& t, const char* op) {
  if (has_sparse_form(t)) [[unlikely]]
    throw_no_sparse(op, t);
}

// NotImplementedError in PyTorch's words: a sparse tensor has no memory of its own.
inline void require_storage(const Tensor& t) {
  if (has_sparse_form(t)) [[unlikely]]
    throw NotImplementedError("Cannot access storage of Sparse{}TensorImpl", is_compressed(t) ? "Csr" : "");
}

}  // namespace naru::ops
