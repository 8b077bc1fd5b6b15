// Sparse tensors: COO (coordinates of the stored elements, and values), CSR (row offsets, column indices and values), CSC (the same by
// columns), BSR and BSC (the same with blocks in place of elements). A sparse tensor is a Tensor and can be stored, passed and used as a
// gradient. This header lists the operators with sparse support; all others throw NotImplementedError.
#pragma once

#include <optional>
#include <string_view>

#include "naru/ops.h"

namespace naru {

enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc };
Layout layout(const Tensor& t);
inline bool is_compressed(const Tensor& t) { return layout(t) >= Layout::SparseCsr; }
inline bool is_sparse(const Tensor& t) { return layout(t) == Layout::SparseCoo; }
inline bool is_sparse_csr(const Tensor& t) { return layout(t) == Layout::SparseCsr; }
const char* name_of(Layout layout) noexcept;  // "sparse_coo"

// indices: integers (dimensions, stored); values (stored, dense dimensions ...). Values at equal coordinates add up. The default sizes are
// the smallest that contain the indices. Throws RuntimeError for indices outside the sizes, and if is_coalesced is set and the indices are
// not coalesced. Differentiable in the values.
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const OptionalDims& sizes = {}, bool is_coalesced = false);
// Matrices, possibly with leading batch dimensions. compressed_indices (batches ..., n + 1): the offsets at which the n rows (columns; rows
// or columns of blocks) begin; plain_indices (batches ..., stored): the column (row) indices of what is stored; values (batches ...,
// stored, dense dimensions ...), with the two dimensions of blocks after `stored`. Throws RuntimeError for parts that do not fit, for
// indices outside the sizes, and, if `sorted`, for plain indices that do not increase within a row (column). Differentiable in the values.
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                const OptionalDims& sizes, Layout layout, bool sorted = false);
// All zeros, with nothing stored. Throws RuntimeError for block layouts, whose block size is unknown, and for compressed layouts below 2
// dimensions.
Tensor sparse_zeros(const Dims& sizes, Layout layout, const Options& o = {});
inline Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                const OptionalDims& sizes = {}) {
  return sparse_compressed_tensor(crow_indices, col_indices, values, sizes, Layout::SparseCsr);
}
inline Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                const OptionalDims& sizes = {}) {
  return sparse_compressed_tensor(ccol_indices, row_indices, values, sizes, Layout::SparseCsc);
}
inline Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                const OptionalDims& sizes = {}) {
  return sparse_compressed_tensor(crow_indices, col_indices, values, sizes, Layout::SparseBsr);
}
inline Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values,
                                const OptionalDims& sizes = {}) {
  return sparse_compressed_tensor(ccol_indices, row_indices, values, sizes, Layout::SparseBsc);
}

// Sorts the coordinates in row-major order and merges duplicates.
Tensor coalesce(const Tensor& t);
bool is_coalesced(const Tensor& t);
// For coalesced COO tensors; sparse_values also for CSR. Throw RuntimeError for others.
Tensor sparse_indices(const Tensor& t);
Tensor sparse_values(const Tensor& t);
// For any COO tensor, coalesced or not.
Tensor raw_indices(const Tensor& t);
Tensor raw_values(const Tensor& t);
// crow_indices and col_indices for CSR and BSR, ccol_indices and row_indices for CSC and BSC. Throw RuntimeError for others.
Tensor crow_indices(const Tensor& t);
Tensor col_indices(const Tensor& t);
Tensor ccol_indices(const Tensor& t);
Tensor row_indices(const Tensor& t);
int64_t stored_count(const Tensor& t);
int64_t sparse_dim(const Tensor& t);
int64_t dense_dim(const Tensor& t);

Tensor to_dense(const Tensor& t);
// sparse_dims: how many of the leading dimensions become sparse; default: all.
Tensor to_sparse(const Tensor& t, std::optional<int64_t> sparse_dims = {});
// blocksize: for BSR and BSC. dense_dims: for a dense t, how many of the last dimensions stay dense; dimensions before the matrix are
// batches, which must all store the same number of elements (RuntimeError).
Tensor to_sparse_compressed(const Tensor& t, Layout layout, const OptionalDims& blocksize = {}, std::optional<int64_t> dense_dims = {});
inline Tensor to_sparse_csr(const Tensor& t) { return to_sparse_compressed(t, Layout::SparseCsr); }
inline Tensor to_sparse_csc(const Tensor& t) { return to_sparse_compressed(t, Layout::SparseCsc); }
inline Tensor to_sparse_bsr(const Tensor& t, const Dims& blocksize) { return to_sparse_compressed(t, Layout::SparseBsr, blocksize); }
inline Tensor to_sparse_bsc(const Tensor& t, const Dims& blocksize) { return to_sparse_compressed(t, Layout::SparseBsc, blocksize); }
// The elements of t where `mask` (any sparse layout) stores elements, in the mask's layout.
Tensor sparse_mask(const Tensor& t, const Tensor& mask);

// Resizes a COO tensor in place. If it stores elements, the numbers of sparse and dense dimensions must stay and no size may shrink
// (RuntimeError). New elements are 0.
void sparse_resize_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims);
void sparse_resize_and_clear_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims);
void resize_as_sparse_(const Tensor& t, const Tensor& model);

namespace sparse {

// Matrix product in which one or both operands are sparse. The result is sparse if both are.
Tensor mm(const Tensor& a, const Tensor& b);
// Batched product of (b, n, k) and (b, k, m), one sparse and one dense; the result is dense.
Tensor bmm(const Tensor& a, const Tensor& b);
// Product of a CSR matrix and a dense one, in which the products of each row are combined by "sum", "mean", "amax" or "amin" instead of
// summed. Rows without stored elements give 0.
Tensor mm(const Tensor& a, const Tensor& b, std::string_view reduce);
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// beta * s + alpha * (a @ b), computed only where the CSR tensor s (batches ..., n, m) stores elements; a (batches ..., n, k), b (batches
// ..., k, m).
Tensor sampled_addmm(const Tensor& s, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// Sums of the stored elements. The result is dense if no sparse dimension is left, else sparse.
Tensor sum(const Tensor& t, const OptionalDims& dims = {}, std::optional<DType> dtype = {});
// Over the stored elements of a dimension; elements that are not stored count as minus infinity.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});

}  // namespace sparse

}  // namespace naru
