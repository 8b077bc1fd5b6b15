// Sparse tensors: construction, components, and the functions of torch.sparse.
#include "naru/ops/sparse.h"

#include "object/tensor_object.h"
#include "ops/sparse/sparse.h"

namespace naru::py {
namespace {

using Sizes = OptionalDims;

// to_sparse with the requested layout.
Tensor in_layout(const Tensor& t, std::optional<int64_t> sparse_dims, std::optional<Layout> wanted, const Sizes& blocksize,
                 std::optional<int64_t> dense_dims) {
  if (wanted && *wanted == Layout::Strided) return to_dense(t);
  const bool blocks = wanted && (*wanted == Layout::SparseBsr || *wanted == Layout::SparseBsc);
  if (blocksize && !blocks) throw RuntimeError("to_sparse: blocksize belongs to layouts torch.sparse_bsr and torch.sparse_bsc");
  if (!wanted || *wanted == Layout::SparseCoo) {
    if (!dense_dims) return to_sparse(t, sparse_dims);
    if (sparse_dims) throw RuntimeError("to_sparse: sparse_dim and dense_dim can't both be given");
    return to_sparse(t, t.dim() - *dense_dims);
  }
  if (sparse_dims) throw RuntimeError("to_sparse: sparse_dim and layout can't both be given");
  return to_sparse_compressed(t, *wanted, blocksize, dense_dims);
}

// Conversion to a compressed layout, with the parameter dense_dim, or blocksize and dense_dim.
void define_conversion(const char* name, Layout wanted, const char* doc) {
  if (wanted == Layout::SparseCsr || wanted == Layout::SparseCsc)
    def(kMethod, name, "input, dense_dim=None", doc,
        [wanted](const Tensor& t, std::optional<int64_t> dense) { return to_sparse_compressed(t, wanted, {}, dense); });
  else
    def(kMethod, name, "input, blocksize, dense_dim=None", doc, [wanted](const Tensor& t, const Dims& block, std::optional<int64_t> dense) {
      return to_sparse_compressed(t, wanted, block, dense);
    });
}

std::optional<Layout> wanted_layout(PyObject* o) {
  if (o == Py_None) return {};
  if (const std::optional<Layout> l = layout_from(o)) return l;
  throw TypeError("to_sparse(): argument 'layout' must be torch.layout, not {}", Py_TYPE(o)->tp_name);
}

void define_sparse_makers() {
  def(kFunction, "_sparse_coo_tensor", "indices, values, size=None, is_coalesced=False",
      "A sparse tensor of coordinates (dimensions, stored) and values (stored, ...).",
      [](const Tensor& indices, const Tensor& values, const Sizes& size, bool coalesced) {
        return sparse_coo_tensor(indices, values, size, coalesced);
      });
  def(kFunction, "_sparse_compressed_tensor", "compressed_indices, plain_indices, values, size, layout, sorted=False",
      "Sparse matrices by rows, columns, or rows or columns of blocks.",
      [](const Tensor& compressed, const Tensor& plain, const Tensor& values, const Sizes& size, PyObject* layout, bool sorted) {
        return sparse_compressed_tensor(compressed, plain, values, size, wanted_layout(layout).value_or(Layout::Strided), sorted);
      });
  def(kMethod, "to_sparse", "input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None",
      "What is not zero, as a sparse tensor: of coordinates for the first sparse_dim dimensions (all), or of a compressed layout.",
      [](const Tensor& t, std::optional<int64_t> dims, PyObject* layout, const Sizes& block, std::optional<int64_t> dense) {
        return in_layout(t, dims, wanted_layout(layout), block, dense);
      });
  def(kMethod, "to_sparse_coo", "input", "What is not zero, as a sparse COO tensor.", [](const Tensor& t) { return to_sparse(t); });
  define_conversion("to_sparse_csr", Layout::SparseCsr, "What is not zero of matrices, as a sparse CSR tensor.");
  define_conversion("to_sparse_csc", Layout::SparseCsc, "What is not zero of matrices, as a sparse CSC tensor.");
  define_conversion("to_sparse_bsr", Layout::SparseBsr, "The blocks of matrices that are not all zero, as a sparse BSR tensor.");
  define_conversion("to_sparse_bsc", Layout::SparseBsc, "The blocks of matrices that are not all zero, as a sparse BSC tensor.");
  def(kMethod, "to_dense", "input, dtype=None, *, masked_grad=None", "A dense tensor with the same elements; equal coordinates add up.",
      [](const Tensor& t, std::optional<DType> type, Ignored) {
        const Tensor dense = to_dense(t);
        return type ? dense.to(*type) : dense;
      });
  def(kMethod, "sparse_mask", "input, mask", "The elements where the sparse mask stores some.",
      [](const Tensor& t, const Tensor& mask) { return sparse_mask(t, mask); });
}

void define_sparse_sizes() {
  def(kMethod, "sparse_resize_", "input, size, sparse_dim, dense_dim",
      "Takes other sizes; one that stores something as many sparse and dense dimensions as it has, none of them smaller.",
      [](const Tensor& t, const Dims& size, int64_t sparse_dims, int64_t dense_dims) {
        sparse_resize_(t, size, sparse_dims, dense_dims);
        return Self();
      });
  def(kMethod, "sparse_resize_and_clear_", "input, size, sparse_dim, dense_dim", "Takes other sizes and stores nothing.",
      [](const Tensor& t, const Dims& size, int64_t sparse_dims, int64_t dense_dims) {
        sparse_resize_and_clear_(t, size, sparse_dims, dense_dims);
        return Self();
      });
  def(kMethod, "resize_as_sparse_", "input, the_template", "Takes the sizes of another sparse tensor.",
      [](const Tensor& t, const Tensor& model) {
        resize_as_sparse_(t, model);
        return Self();
      });
}

void define_parts() {
  def(kMethod, "coalesce", "input", "The same elements, each coordinate once, in row-major order.",
      [](const Tensor& t) { return coalesce(t); });
  def(kMethod, "is_coalesced", "input", "Whether each coordinate stands once, in row-major order.",
      [](const Tensor& t) { return is_coalesced(t); });
  def(kMethod, "_coalesced_", "input, coalesced", "Says whether each coordinate stands once, in row-major order; nobody looks.",
      [](const Tensor& t, bool coalesced) {
        ops::set_coalesced(t, coalesced);
        return t;
      });
  def(kMethod, "indices", "input", "The coordinates (dimensions, stored) of a coalesced tensor.",
      [](const Tensor& t) { return sparse_indices(t); });
  def(kMethod, "values", "input", "The stored values of a coalesced tensor or of one by rows.",
      [](const Tensor& t) { return sparse_values(t); });
  def(kMethod, "_indices", "input", "The coordinates, coalesced or not.", [](const Tensor& t) { return raw_indices(t); });
  def(kMethod, "_values", "input", "The values, coalesced or not, without history.", [](const Tensor& t) { return raw_values(t); });
  def(kMethod, "crow_indices", "input", "Where each row of a CSR or BSR tensor begins.", [](const Tensor& t) { return crow_indices(t); });
  def(kMethod, "col_indices", "input", "The columns of what a CSR or BSR tensor stores.", [](const Tensor& t) { return col_indices(t); });
  def(kMethod, "ccol_indices", "input", "Where each column of a CSC or BSC tensor begins.",
      [](const Tensor& t) { return ccol_indices(t); });
  def(kMethod, "row_indices", "input", "The rows of what a CSC or BSC tensor stores.", [](const Tensor& t) { return row_indices(t); });
  def(kMethod, "_nnz", "input", "How many values are stored.", [](const Tensor& t) { return stored_count(t); });
  def(kMethod, "sparse_dim", "input", "How many dimensions have coordinates.", [](const Tensor& t) { return sparse_dim(t); });
  def(kMethod, "dense_dim", "input", "How many dimensions each stored value has.", [](const Tensor& t) { return dense_dim(t); });
  def(kMethod, "_dimI", "input", "The same as sparse_dim().", [](const Tensor& t) { return sparse_dim(t); });
  def(kMethod, "_dimV", "input", "The same as dense_dim().", [](const Tensor& t) { return dense_dim(t); });
}

void define_operators() {
  def(kFunction, "_sparse_mm", "a, b, reduce=None", "A product of matrices of which some are sparse.",
      [](const Tensor& a, const Tensor& b, std::optional<std::string_view> reduce) {
        return reduce ? sparse::mm(a, b, *reduce) : sparse::mm(a, b);
      });
  def(kFunction, "spmm", "input, mat2", "A product of matrices of which some are sparse.",
      [](const Tensor& a, const Tensor& b) { return sparse::mm(a, b); });
  def(kFunction, "_sparse_addmm", "input, mat1, mat2, *, beta=1, alpha=1", "beta * input + alpha * (mat1 @ mat2).",
      [](const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) { return sparse::addmm(c, a, b, beta, alpha); });
  def(kFunction, "_sparse_sampled_addmm", "input, mat1, mat2, *, beta=1, alpha=1",
      "beta * input + alpha * (mat1 @ mat2) where input stores something.",
      [](const Tensor& s, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
        return sparse::sampled_addmm(s, a, b, beta, alpha);
      });
  def(kFunction, "_sparse_sum", "input, dim=None, dtype=None", "Sums of what is stored.",
      [](const Tensor& t, const OptionalDims& dims, std::optional<DType> type) { return sparse::sum(t, dims, type); });
  def(kFunction, "_sparse_softmax", "input, dim, dtype=None", "softmax over what is stored along a dimension.",
      [](const Tensor& t, int64_t dim, std::optional<DType> type) { return sparse::softmax(t, dim, type); });
  def(kFunction, "_sparse_log_softmax", "input, dim, dtype=None", "log_softmax over what is stored along a dimension.",
      [](const Tensor& t, int64_t dim, std::optional<DType> type) { return sparse::log_softmax(t, dim, type); });
}

}  // namespace

void define_sparse() {
  define_sparse_makers();
  define_sparse_sizes();
  define_parts();
  define_operators();
}

}  // namespace naru::py
