// Linear algebra, after torch.linalg, and the older names in torch. Matrices are the last two dimensions; the others are batch dimensions.
// Supports float32, float64, complex64 and complex128 (for complex types, read "transposed" below as conjugate-transposed and "symmetric"
// as Hermitian). Differentiable to any order where PyTorch is.
//
// Errors: RuntimeError for shapes that do not fit, and for operands of different dtypes or devices; NotImplementedError for other dtypes;
// LinAlgError (naru/error.h) if a matrix is singular or not positive-definite, or an algorithm does not converge, for which the host has to
// wait. The _ex functions do not wait: they return an info code per matrix instead (int32; 0: success), unless check_errors. On cpu,
// OpenBLAS' LAPACK does the work; devices other than virtual ones have no routines for it and fall back to cpu (naru/device/fallback.h).
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/ops.h"
#include "naru/tensor.h"

namespace naru::linalg {

// --- systems of equations --------------------------------------------------------------------------------------------------------------
// Solves A X = B, or X A = B unless left. A (*, n, n); B (*, n, k), or (*, n), a batch of vectors, if its sizes are A's without the last
// one.
Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left = true, bool check_errors = false);
// The same for triangular A; unitriangular: the diagonal counts as ones. Does not read the other triangle, and does not check for
// singularity.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true, bool unitriangular = false);
Tensor inv(const Tensor& a);
std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors = false);
Tensor det(const Tensor& a);
// (sign, logarithm of the absolute value) of the determinant.
std::pair<Tensor, Tensor> slogdet(const Tensor& a);
// (solution, residuals, rank, singular values) of the least-squares problem min |A X - B|; A (*, m, n), B (*, m, k) or (*, m). driver:
// "gels" (A has full rank), "gelsy" (the default), "gelsd", "gelss". What a driver does not compute is empty.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {},
                                                 std::optional<std::string_view> driver = {});

// --- factorizations --------------------------------------------------------------------------------------------------------------------
// L with A = L Lᵀ, from the lower triangle of A; or U with A = Uᵀ U, from the upper.
Tensor cholesky(const Tensor& a, bool upper = false);
std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper = false, bool check_errors = false);
// (LU, pivots): both factors in one matrix, and the row with which each step swapped (int32, from 1). A (*, m, n).
std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot = true);
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot = true, bool check_errors = false);
// (P, L, U) with A = P L U.
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot = true);
// Solves A X = B (unless left, X A = B; adjoint: Aᵀ) from the result of lu_factor.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true, bool adjoint = false);
// (Q, R): mode "reduced", "complete" (Q square), or "r" (Q empty).
std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode = "reduced");
// The first columns of the product of the Householder reflectors I - tau_i v_i v_iᵀ, in geqrf's format.
Tensor householder_product(const Tensor& a, const Tensor& tau);
// (LD, pivots) of a symmetric A (of a Hermitian A if it is complex and hermitian is set), from its lower triangle. ldl_solve solves A X = B
// from these.
std::pair<Tensor, Tensor> ldl_factor(const Tensor& a, bool hermitian = false);
std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& a, bool hermitian = false, bool check_errors = false);
Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian = false);
// (eigenvalues ascending, eigenvectors as columns) of a symmetric A, from its triangle "L" or "U".
std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view triangle = "L");
Tensor eigvalsh(const Tensor& a, std::string_view triangle = "L");
// (eigenvalues in no particular order, eigenvectors as columns of norm 1) of any square A, complex. Throws RuntimeError for infinities and
// NaN, and if a gradient depends on the eigenvectors' phase, which is not unique.
std::pair<Tensor, Tensor> eig(const Tensor& a);
Tensor eigvals(const Tensor& a);
// (U, S, Vᵀ) with A = U diag(S) Vᵀ, S descending. U and V are square, or have as many columns as S has elements.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices = true);
Tensor svdvals(const Tensor& a);
// (U, H) with A = U H, UᵀU = I and H symmetric, positive-semidefinite; A (*, m, n), m >= n.
std::pair<Tensor, Tensor> polar(const Tensor& a);

// --- based on singular values and eigenvalues
// -----------------------------------------------------------------------------------------------
// Singular values of at most max(atol, rtol * the greatest) count as 0. Tolerances are scalars or tensors that broadcast to the batch. If
// neither is given, rtol is the dtype's epsilon times the longer side. hermitian: A is symmetric and its lower triangle is used.
Tensor pinv(const Tensor& a, const std::optional<Operand>& atol = {}, const std::optional<Operand>& rtol = {}, bool hermitian = false);
Tensor matrix_rank(const Tensor& a, const std::optional<Operand>& atol = {}, const std::optional<Operand>& rtol = {},
                   bool hermitian = false);
// The square root of a symmetric positive-definite A.
Tensor matrix_sqrth(const Tensor& a);

// --- norms -----------------------------------------------------------------------------------------------------------------------------
Tensor vector_norm(const Tensor& t, double ord = 2, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// ord: 1, -1, 2, -2, inf, -inf; or "fro", "nuc". dims: the two dimensions of the matrices.
Tensor matrix_norm(const Tensor& t, double ord, const Dims& dims = {-2, -1}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor matrix_norm(const Tensor& t, std::string_view ord = "fro", const Dims& dims = {-2, -1}, bool keepdim = false,
                   std::optional<DType> dtype = {});
// The matrix norm if two dimensions are given, or t is a matrix and ord is given; else the vector norm.
Tensor norm(const Tensor& t, std::optional<double> ord = {}, const OptionalDims& dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
Tensor norm(const Tensor& t, std::string_view ord, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The condition number |A| |A⁻¹| in a norm (default 2); inf for singular matrices.
Tensor cond(const Tensor& a, std::optional<double> p = {});
Tensor cond(const Tensor& a, std::string_view p);

// --- products and powers ----------------------------------------------------------------------------------------------------------------------
Tensor matrix_exp(const Tensor& a);
Tensor matrix_power(const Tensor& a, int64_t n);
// The product of matrices, in the order that needs the fewest multiplications. The first and the last may be vectors.
Tensor multi_dot(const std::vector<Tensor>& tensors);
// The powers 0 ... n - 1 of the last dimension's elements, in a new last dimension.
Tensor vander(const Tensor& x, std::optional<int64_t> n = {});
Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
// Sums of products along a dimension.
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
// tensorinv: X with tensordot(X, A, ind) the identity. tensorsolve: X with tensordot(A, X, X.dim()) = B; first moves the dimensions dims of
// A to the end.
Tensor tensorinv(const Tensor& a, int64_t ind = 2);
Tensor tensorsolve(const Tensor& a, const Tensor& b, const OptionalDims& dims = {});

}  // namespace naru::linalg

namespace naru {

// Older names.
using linalg::det;
using linalg::matrix_exp;
using linalg::matrix_power;
using linalg::slogdet;
inline Tensor inverse(const Tensor& a) { return linalg::inv(a); }
inline Tensor pinverse(const Tensor& a, double rcond = 1e-15) { return linalg::pinv(a, {}, Operand(rcond)); }
inline Tensor orgqr(const Tensor& a, const Tensor& tau) { return linalg::householder_product(a, tau); }
inline Tensor chain_matmul(const std::vector<Tensor>& matrices) { return matrices.size() == 1 ? matrices[0] : linalg::multi_dot(matrices); }
inline Tensor lu_solve(const Tensor& b, const Tensor& lu, const Tensor& pivots) { return linalg::lu_solve(lu, pivots, b); }

Tensor logdet(const Tensor& a);
// Solves A X = B, and computes the inverse of A, from A's Cholesky factor.
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper = false);
Tensor cholesky_inverse(const Tensor& factor, bool upper = false);
// (P, L, U) from the result of lu_factor; those not requested are empty.
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpack_data = true, bool unpack_pivots = true);
// (U, S, V): V, not its transpose.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool some = true, bool compute_uv = true);
// (R and the reflectors in one matrix, the reflectors' factors tau).
std::pair<Tensor, Tensor> geqrf(const Tensor& a);
// Q C, or C Q unless left, with Q the product of all reflectors; Qᵀ if transpose.
Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& c, bool left = true, bool transpose = false);
// (X with A X = B, a copy of A); Aᵀ if transpose.
std::pair<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper = true, bool transpose = false,
                                           bool unitriangular = false);

}  // namespace naru
