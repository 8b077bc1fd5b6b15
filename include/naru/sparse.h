// Sparse tensors: coordinates of the elements that are stored, and their values (COO), or the rows' beginnings, columns and values (CSR). A Tensor
// like any other to hold, to pass on and as a gradient; what operators have a sparse form is said here, any other throws NotImplementedError.
#pragma once

#include <optional>

#include "naru/ops.h"

namespace naru {

enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr };
Layout layout(const Tensor& t);
inline bool is_sparse(const Tensor& t) { return layout(t) == Layout::SparseCoo; }
inline bool is_sparse_csr(const Tensor& t) { return layout(t) == Layout::SparseCsr; }
const char* name_of(Layout layout) noexcept;  // "sparse_coo"

// indices: integers (dimensions, stored); values (stored, dense dimensions ...). Equal coordinates add up. Without sizes: as large as the indices ask
// for. Throws RuntimeError for indices outside the sizes. Differentiable by the values.
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const std::optional<Dims>& sizes = {}, bool is_coalesced = false);
// A matrix: crow_indices (rows + 1), col_indices and values (stored).
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                         const std::optional<Dims>& sizes = {});

// The coordinates in row-major order, each once.
Tensor coalesce(const Tensor& t);
bool is_coalesced(const Tensor& t);
// Of a coalesced COO tensor; values of a CSR one, too. Throw RuntimeError for others.
Tensor sparse_indices(const Tensor& t);
Tensor sparse_values(const Tensor& t);
// Of any COO tensor.
Tensor raw_indices(const Tensor& t);
Tensor raw_values(const Tensor& t);
Tensor crow_indices(const Tensor& t);
Tensor col_indices(const Tensor& t);
int64_t stored_count(const Tensor& t);
int64_t sparse_dim(const Tensor& t);
int64_t dense_dim(const Tensor& t);

Tensor to_dense(const Tensor& t);
// sparse_dims: how many of the leading dimensions have coordinates; all of them by default.
Tensor to_sparse(const Tensor& t, std::optional<int64_t> sparse_dims = {});
Tensor to_sparse_csr(const Tensor& t);
// The elements of t where mask stores some.
Tensor sparse_mask(const Tensor& t, const Tensor& mask);

namespace sparse {

// A product of matrices of which one is sparse, or both; then so is the result.
Tensor mm(const Tensor& a, const Tensor& b);
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// beta * s + alpha * (a @ b) where the CSR matrix s stores something, and nowhere else.
Tensor sampled_addmm(const Tensor& s, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// Sums of what is stored: a dense tensor if no dimension with coordinates is left, else a sparse one.
Tensor sum(const Tensor& t, const OptionalDims& dims = {}, std::optional<DType> dtype = {});
// Over the stored elements of a dimension; what is not stored counts as minus infinity.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});

}  // namespace sparse

}  // namespace naru
