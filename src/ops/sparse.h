// Sparse tensors within operators: what they are made of, and where operators of dense tensors hand them over. Every other way to elements (views,
// instructions, memory) refuses them, since their dtype is a form that nothing computes with (dtype.h).
#pragma once

#include <span>

#include "ir/program.h"
#include "naru/sparse.h"
#include "ops/common.h"

namespace naru::ops {

struct SparseParts final : LayoutParts {
  Layout layout = Layout::SparseCoo;
  Tensor indices;  // COO: (dimensions, stored); CSR: the columns
  Tensor crow;     // CSR
  Tensor values;   // without history
  bool coalesced = false;
};
const SparseParts& parts_of(const Tensor& t);

inline bool has_sparse_form(const Tensor& t) noexcept { return t.defined() && is_sparse_form(t.impl()->dtype); }

// A differentiable COO tensor of parts that need no check, and its values with history.
Tensor with_values(const Tensor& indices, const Tensor& values, const Dims& sizes, bool coalesced);
Tensor like_with_values(const Tensor& t, const Tensor& values);  // the same coordinates and layout
Tensor values_of(const Tensor& t);
// The coordinates as a COO tensor has them, of either layout.
Tensor coordinates_of(const Tensor& t);
Tensor as_coo(const Tensor& t);
// One number for each column of coordinates.
Tensor keys_of(const Tensor& indices, const Dims& sizes);

// An operator of the table over operands of which one is sparse.
Tensor run_sparse(ir::OpId id, std::span<const Operand> operands);
void run_sparse_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);
Tensor sparse_to(const Tensor& t, Device device, DType dtype, bool copy);
Tensor sparse_clone(const Tensor& t);
Tensor sparse_transpose(const Tensor& t, int64_t a, int64_t b);
void sparse_zero_(const Tensor& t);
// Of COO tensors; a matrix by rows is selected from as one of coordinates, and refused by name elsewhere.
Tensor sparse_cat(const std::vector<Tensor>& tensors, int64_t dim);
Tensor sparse_unsqueeze(const Tensor& t, int64_t dim);
Tensor sparse_select(const Tensor& t, int64_t dim, int64_t index);  // dense where the only sparse dimension goes
Tensor sparse_index_select(const Tensor& t, int64_t dim, const Tensor& index);
Tensor sparse_narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length);
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

}  // namespace naru::ops
