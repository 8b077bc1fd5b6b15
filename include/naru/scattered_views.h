// Copies of a tensor with another's elements in a part of it, tensors spread over diagonals, pieces along named dimensions, and what is like these. Gradients
// follow of themselves, unless said otherwise.
#pragma once

#include <optional>
#include <vector>

#include "naru/compositions.h"

namespace naru {

// A copy of t whose view by select, slices, diagonal or as_strided has source's elements. RuntimeError unless source has the view's sizes.
Tensor select_scatter(const Tensor& t, const Tensor& source, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& t, const Tensor& source, int64_t dim = 0, std::optional<int64_t> start = {},
                     std::optional<int64_t> end = {}, int64_t step = 1);
Tensor diagonal_scatter(const Tensor& t, const Tensor& source, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor as_strided_scatter(const Tensor& t, const Tensor& source, const Dims& sizes, const Dims& strides,
                          std::optional<int64_t> offset = {});
// Matrices, over dimensions dim1 and dim2 of the result, whose diagonals are t's last dimension, 0 elsewhere; of all elements in one diagonal.
Tensor diag_embed(const Tensor& t, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor diagflat(const Tensor& t, int64_t offset = 0);

// tensor_split along dimension 1 (0 of a vector), 0 and 2. RuntimeError where there is no such dimension, or `sections` does not divide it.
std::vector<Tensor> hsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& t, const Dims& ends);
std::vector<Tensor> vsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& t, const Dims& ends);
std::vector<Tensor> dsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& t, const Dims& ends);

// A copy of narrow(); the sum over dimensions that t has more, or that are 1 in `sizes`.
Tensor narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length);
Tensor sum_to_size(const Tensor& t, const Dims& sizes);
// The coordinates, in a tensor of this shape, of elements numbered row by row: one tensor for each dimension. TypeError unless the numbers are integers,
// ValueError for negative sizes.
std::vector<Tensor> unravel_index(const Tensor& indices, const Dims& shape);
// nonzero() cut or filled up to so many rows.
Tensor nonzero_static(const Tensor& t, int64_t size, int64_t fill_value = -1);
// The p-norm over all dimensions but one, kept with size 1; over all of them where dim is -1.
Tensor norm_except_dim(const Tensor& t, double p = 2, int64_t dim = 0);
// beta * c + alpha * (the sum of the products of a batch of matrices).
Tensor addbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

// The derivatives along dimensions (all, unless given) of a function known at regular steps, or at coordinates: spacing is a number for all of them, or
// a number or a vector of coordinates for each. By differences of neighbours; at the ends of edge_order 1 or 2. RuntimeError where a dimension has no
// more than edge_order places.
std::vector<Tensor> gradient(const Tensor& t, const Scalar& spacing = 1, const OptionalDims& dims = {}, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& t, const std::vector<Operand>& spacing, const OptionalDims& dims = {}, int64_t edge_order = 1);

}  // namespace naru
