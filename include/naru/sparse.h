// Sparse tensors: coordinates of the elements that are stored, and their values (COO), or the rows' beginnings, columns and values (CSR), the same by columns
// (CSC), or of blocks in place of elements (BSR, BSC). A Tensor like any other to hold, to pass on and as a gradient; what operators have a sparse form is
// said here, any other throws NotImplementedError.
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

// indices: integers (dimensions, stored); values (stored, dense dimensions ...). Equal coordinates add up. Without sizes: as large as the indices ask
// for. Throws RuntimeError for indices outside the sizes, and for such as are said to be coalesced and are not. Differentiable by the values.
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const OptionalDims& sizes = {}, bool is_coalesced = false);
// Matrices, of batch dimensions in front. compressed_indices (batches ..., n + 1): where each of the n rows (columns; rows, columns of blocks) begins;
// plain_indices (batches ..., stored): the columns (rows) of what is stored; values (batches ..., stored, dense dimensions ...), behind `stored` the two
// dimensions of blocks. Throws RuntimeError for parts that do not fit, and for indices outside the sizes; if `sorted`, for plain indices that do not rise
// within a row (column), too. Differentiable by the values.
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                const OptionalDims& sizes, Layout layout, bool sorted = false);
// Nothing stored: all zeros. Throws RuntimeError for layouts of blocks, whose size is unknown, and for compressed ones of less than two dimensions.
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

// The coordinates in row-major order, each once.
Tensor coalesce(const Tensor& t);
bool is_coalesced(const Tensor& t);
// Of a coalesced COO tensor; values of a CSR one, too. Throw RuntimeError for others.
Tensor sparse_indices(const Tensor& t);
Tensor sparse_values(const Tensor& t);
// Of any COO tensor.
Tensor raw_indices(const Tensor& t);
Tensor raw_values(const Tensor& t);
// Of CSR and BSR; of CSC and BSC. Throw RuntimeError for others.
Tensor crow_indices(const Tensor& t);
Tensor col_indices(const Tensor& t);
Tensor ccol_indices(const Tensor& t);
Tensor row_indices(const Tensor& t);
int64_t stored_count(const Tensor& t);
int64_t sparse_dim(const Tensor& t);
int64_t dense_dim(const Tensor& t);

Tensor to_dense(const Tensor& t);
// sparse_dims: how many of the leading dimensions have coordinates; all of them by default.
Tensor to_sparse(const Tensor& t, std::optional<int64_t> sparse_dims = {});
// blocksize: of BSR and BSC. dense_dims: of a dense tensor, how many of the last dimensions have no coordinates; those in front of the matrix are batches,
// all of which must store equally much (RuntimeError).
Tensor to_sparse_compressed(const Tensor& t, Layout layout, const OptionalDims& blocksize = {}, std::optional<int64_t> dense_dims = {});
inline Tensor to_sparse_csr(const Tensor& t) { return to_sparse_compressed(t, Layout::SparseCsr); }
inline Tensor to_sparse_csc(const Tensor& t) { return to_sparse_compressed(t, Layout::SparseCsc); }
inline Tensor to_sparse_bsr(const Tensor& t, const Dims& blocksize) { return to_sparse_compressed(t, Layout::SparseBsr, blocksize); }
inline Tensor to_sparse_bsc(const Tensor& t, const Dims& blocksize) { return to_sparse_compressed(t, Layout::SparseBsc, blocksize); }
// The elements of t where mask, of any sparse layout, stores some: in the mask's layout.
Tensor sparse_mask(const Tensor& t, const Tensor& mask);

// Other sizes of a COO tensor, in place: if it stores something, of as many sparse and dense dimensions, none of them smaller (RuntimeError). What grows is 0.
void sparse_resize_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims);
void sparse_resize_and_clear_(const Tensor& t, const Dims& sizes, int64_t sparse_dims, int64_t dense_dims);
void resize_as_sparse_(const Tensor& t, const Tensor& model);

namespace sparse {

// A product of matrices of which one is sparse, or both; then so is the result.
Tensor mm(const Tensor& a, const Tensor& b);
// Of batches (b, n, k) and (b, k, m), one sparse and one dense: dense.
Tensor bmm(const Tensor& a, const Tensor& b);
// Of a CSR matrix and a dense one: what is made of the products of each row in place of their sum: "sum", "mean", "amax" or "amin". A row of which nothing is
// stored gives 0.
Tensor mm(const Tensor& a, const Tensor& b, std::string_view reduce);
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// beta * s + alpha * (a @ b) where the CSR tensor s (batches ..., n, m) stores something, and nowhere else; a (batches ..., n, k), b (batches ..., k, m).
Tensor sampled_addmm(const Tensor& s, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// Sums of what is stored: a dense tensor if no dimension with coordinates is left, else a sparse one.
Tensor sum(const Tensor& t, const OptionalDims& dims = {}, std::optional<DType> dtype = {});
// Over the stored elements of a dimension; what is not stored counts as minus infinity.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});

}  // namespace sparse

}  // namespace naru
