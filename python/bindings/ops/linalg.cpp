// Linear algebra: torch.linalg (with the prefix linalg_, as PyTorch names it) and the older names.
#include "naru/ops/linalg.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

using OptNumber = std::optional<double>;
using OptOperand = std::optional<Operand>;
const Dims kLast{-2, -1};

NamedList named_list(const char* kind, const char* a, const char* b, std::pair<Tensor, Tensor> t) {
  return {kind, {{a, t.first}, {b, t.second}}};
}
NamedList named_list(const char* kind, const char* a, const char* b, const char* c, std::tuple<Tensor, Tensor, Tensor> t) {
  return {kind, {{a, std::get<0>(t)}, {b, std::get<1>(t)}, {c, std::get<2>(t)}}};
}

void define_solving() {
  def(kFunction, "linalg_solve", "A, B, *, left=True, out=None", "X with A X = B (X A = B unless left).",
      [](const Tensor& a, const Tensor& b, bool left) { return linalg::solve(a, b, left); });
  def(kFunction, "linalg_solve_ex", "A, B, *, left=True, check_errors=False, out=None",
      "The same, and a number for each matrix: (result, info).", [](const Tensor& a, const Tensor& b, bool left, bool check) {
        return named_list("linalg_solve_ex", "result", "info", linalg::solve_ex(a, b, left, check));
      });
  def(kFunction, "linalg_solve_triangular", "input, B, *, upper, left=True, unitriangular=False, out=None",
      "X with A X = B, of A's upper or lower triangle.",
      [](const Tensor& a, const Tensor& b, bool upper, bool left, bool ones) { return linalg::solve_triangular(a, b, upper, left, ones); });
  def(kFunction, "linalg_inv", "A, *, out=None", "The inverse of a matrix.", [](const Tensor& a) { return linalg::inv(a); });
  def(kBoth, "inverse", "input, *, out=None", "The inverse of a matrix.", [](const Tensor& a) { return linalg::inv(a); });
  def(kFunction, "linalg_inv_ex", "A, *, check_errors=False, out=None", "The inverse, and a number for each matrix: (inverse, info).",
      [](const Tensor& a, bool check) { return named_list("linalg_inv_ex", "inverse", "info", linalg::inv_ex(a, check)); });
  def(kFunction, "linalg_det", "A, *, out=None", "The determinant.", [](const Tensor& a) { return linalg::det(a); });
  def(kBoth, "det", "input", "The determinant.", [](const Tensor& a) { return linalg::det(a); });
  def(kFunction, "linalg_slogdet", "A, *, out=None", "(sign, logabsdet) of the determinant.",
      [](const Tensor& a) { return named_list("linalg_slogdet", "sign", "logabsdet", linalg::slogdet(a)); });
  def(kBoth, "slogdet", "input, *, out=None", "(sign, logabsdet) of the determinant.",
      [](const Tensor& a) { return named_list("slogdet", "sign", "logabsdet", linalg::slogdet(a)); });
  def(kBoth, "logdet", "input", "The logarithm of the determinant; NaN where it is negative.", [](const Tensor& a) { return logdet(a); });
  def(kFunction, "linalg_lstsq", "input, b, rcond=None, *, driver=None, out=None",
      "The X of least |A X - B|: (solution, residuals, rank, singular_values).",
      [](const Tensor& a, const Tensor& b, OptNumber rcond, OptText driver) {
        const auto [x, residuals, rank, values] = linalg::lstsq(a, b, rcond, driver);
        return NamedList{"linalg_lstsq", {{"solution", x}, {"residuals", residuals}, {"rank", rank}, {"singular_values", values}}};
      });
  def(kBoth, "triangular_solve", "input, A, upper=True, transpose=False, unitriangular=False, *, out=None",
      "(X with A X = input, a copy of A), of a triangle of A.",
      [](const Tensor& b, const Tensor& a, bool upper, bool transpose, bool ones) {
        return named_list("triangular_solve", "solution", "cloned_coefficient", triangular_solve(b, a, upper, transpose, ones));
      });
}

void define_lu() {
  def(kFunction, "linalg_lu_factor", "A, *, pivot=True, out=None", "(LU, pivots): both factors in one matrix.",
      [](const Tensor& a, bool pivot) { return named_list("linalg_lu_factor", "LU", "pivots", linalg::lu_factor(a, pivot)); });
  def(kFunction, "linalg_lu_factor_ex", "A, *, pivot=True, check_errors=False, out=None", "(LU, pivots, info).",
      [](const Tensor& a, bool pivot, bool check) {
        return named_list("linalg_lu_factor_ex", "LU", "pivots", "info", linalg::lu_factor_ex(a, pivot, check));
      });
  def(kFunction, "linalg_lu", "A, *, pivot=True, out=None", "(P, L, U) with A = P L U.",
      [](const Tensor& a, bool pivot) { return named_list("linalg_lu", "P", "L", "U", linalg::lu(a, pivot)); });
  def(kFunction, "linalg_lu_solve", "LU, pivots, B, *, left=True, adjoint=False, out=None", "X with A X = B, of what lu_factor made of A.",
      [](const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
        return linalg::lu_solve(lu, pivots, b, left, adjoint);
      });
  def(kBoth, "lu_solve", "input, LU_data, LU_pivots, *, out=None", "X with A X = input, of what lu_factor made of A.",
      [](const Tensor& b, const Tensor& lu, const Tensor& pivots) { return lu_solve(b, lu, pivots); });
  def(kFunction, "lu_unpack", "LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None", "(P, L, U) of what lu_factor made.",
      [](const Tensor& lu, const Tensor& pivots, bool data, bool exchanges) {
        return named_list("lu_unpack", "P", "L", "U", lu_unpack(lu, pivots, data, exchanges));
      });
  def(kMethod, "lu", "input, pivot=True, get_infos=False", "(LU, pivots), and with get_infos a number for each matrix.",
      [](const Tensor& a, bool pivot, bool infos) {
        if (infos) {
          const auto [factors, pivots, info] = linalg::lu_factor_ex(a, pivot);
          return std::vector<Tensor>{factors, pivots, info};
        }
        const auto [factors, pivots] = linalg::lu_factor(a, pivot);
        return std::vector<Tensor>{factors, pivots};
      });
  def(kFunction, "_lu_with_info", "input, pivot=True, check_errors=True", "(LU, pivots, info).",
      [](const Tensor& a, bool pivot, bool check) {
        auto [factors, pivots, info] = linalg::lu_factor_ex(a, pivot);
        if (check) std::tie(factors, pivots) = linalg::lu_factor(a, pivot);
        return std::vector<Tensor>{factors, pivots, info};
      });
}

void define_symmetric() {
  def(kFunction, "linalg_cholesky", "input, *, upper=False, out=None", "L with A = L Lᵀ (Uᵀ U if upper).",
      [](const Tensor& a, bool upper) { return linalg::cholesky(a, upper); });
  def(kFunction, "linalg_cholesky_ex", "input, *, upper=False, check_errors=False, out=None",
      "The same, and a number for each matrix: (L, info).", [](const Tensor& a, bool upper, bool check) {
        return named_list("linalg_cholesky_ex", "L", "info", linalg::cholesky_ex(a, upper, check));
      });
  def(kBoth, "cholesky_solve", "input, input2, upper=False, *, out=None", "X with A X = input, of A's factor.",
      [](const Tensor& b, const Tensor& factor, bool upper) { return cholesky_solve(b, factor, upper); });
  def(kBoth, "cholesky_inverse", "input, upper=False, *, out=None", "The inverse of A, of its factor.",
      [](const Tensor& factor, bool upper) { return cholesky_inverse(factor, upper); });
  def(kFunction, "linalg_ldl_factor", "input, *, hermitian=False, out=None", "(LD, pivots) of a symmetric matrix.",
      [](const Tensor& a, bool hermitian) { return named_list("linalg_ldl_factor", "LD", "pivots", linalg::ldl_factor(a, hermitian)); });
  def(kFunction, "linalg_ldl_factor_ex", "input, *, hermitian=False, check_errors=False, out=None", "(LD, pivots, info).",
      [](const Tensor& a, bool hermitian, bool check) {
        return named_list("linalg_ldl_factor_ex", "LD", "pivots", "info", linalg::ldl_factor_ex(a, hermitian, check));
      });
  def(kFunction, "linalg_ldl_solve", "LD, pivots, B, *, hermitian=False, out=None", "X with A X = B, of what ldl_factor made of A.",
      [](const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) { return linalg::ldl_solve(ld, pivots, b, hermitian); });
  def(kFunction, "linalg_eigh", "input, UPLO='L', *, out=None", "(eigenvalues ascending, eigenvectors) of a symmetric matrix.",
      [](const Tensor& a, std::string_view triangle) {
        return named_list("linalg_eigh", "eigenvalues", "eigenvectors", linalg::eigh(a, triangle));
      });
  def(kFunction, "linalg_eigvalsh", "input, UPLO='L', *, out=None", "The eigenvalues of a symmetric matrix, ascending.",
      [](const Tensor& a, std::string_view triangle) { return linalg::eigvalsh(a, triangle); });
  def(kFunction, "linalg_eig", "input, *, out=None", "(eigenvalues, eigenvectors) of a square matrix, complex.",
      [](const Tensor& a) { return named_list("linalg_eig", "eigenvalues", "eigenvectors", linalg::eig(a)); });
  def(kFunction, "linalg_eigvals", "input, *, out=None", "The eigenvalues of a square matrix, complex.",
      [](const Tensor& a) { return linalg::eigvals(a); });
  def(kFunction, "linalg_matrix_sqrth", "input", "The square root of a symmetric, positive-definite matrix.",
      [](const Tensor& a) { return linalg::matrix_sqrth(a); });
}

void define_orthogonal() {
  def(kFunction, "linalg_qr", "A, mode='reduced', *, out=None", "(Q, R) with A = Q R; mode: 'reduced', 'complete' or 'r'.",
      [](const Tensor& a, std::string_view mode) { return named_list("linalg_qr", "Q", "R", linalg::qr(a, mode)); });
  def(kBoth, "geqrf", "input, *, out=None", "R and reflectors in one matrix, and the reflectors' factors: (a, tau).",
      [](const Tensor& a) { return named_list("geqrf", "a", "tau", geqrf(a)); });
  const auto product = [](const Tensor& a, const Tensor& tau) { return linalg::householder_product(a, tau); };
  def(kFunction, "linalg_householder_product", "input, tau, *, out=None", "The first columns of the product of reflectors.", product);
  def(kBoth, "orgqr", "input, input2, *, out=None", "The first columns of the product of reflectors.", product);
  def(kBoth, "ormqr", "input, input2, input3, left=True, transpose=False, *, out=None", "The product of reflectors times a matrix.",
      [](const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool transpose) { return ormqr(a, tau, c, left, transpose); });
  const auto refuse_driver = [](OptText driver) {
    if (driver) throw RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  };
  def(kFunction, "linalg_svd", "A, full_matrices=True, *, driver=None, out=None", "(U, S, Vh) with A = U diag(S) Vh.",
      [refuse_driver](const Tensor& a, bool full, OptText driver) {
        refuse_driver(driver);
        return named_list("linalg_svd", "U", "S", "Vh", linalg::svd(a, full));
      });
  def(kFunction, "linalg_svdvals", "A, *, driver=None, out=None", "The singular values, descending.",
      [refuse_driver](const Tensor& a, OptText driver) {
        refuse_driver(driver);
        return linalg::svdvals(a);
      });
  def(kBoth, "svd", "input, some=True, compute_uv=True, *, out=None", "(U, S, V) with input = U diag(S) Vᵀ.",
      [](const Tensor& a, bool some, bool vectors) { return named_list("svd", "U", "S", "V", svd(a, some, vectors)); });
  def(kFunction, "linalg_polar", "A, *, out=None", "(U, H) with A = U H, U of orthonormal columns and H symmetric.",
      [](const Tensor& a) { return named_list("linalg_polar", "U", "H", linalg::polar(a)); });
}

void define_ranks() {
  const auto inverse = [](const Tensor& a, const OptOperand& atol, const OptOperand& rtol, bool hermitian) {
    return linalg::pinv(a, atol, rtol, hermitian);
  };
  const auto inverse_by = [](const Tensor& a, const Operand& rcond, bool hermitian) { return linalg::pinv(a, {}, rcond, hermitian); };
  def(kFunction, "linalg_pinv", "input, *, atol=None, rtol=None, hermitian=False, out=None", "The pseudoinverse.", inverse);
  def(kFunction, "linalg_pinv", "input, rcond, hermitian=False, *, out=None", "The pseudoinverse.", inverse_by);
  def(kBoth, "pinverse", "input, rcond=1e-15", "The pseudoinverse.",
      [](const Tensor& a, const Operand& rcond) { return linalg::pinv(a, {}, rcond); });
  def(kFunction, "linalg_matrix_rank", "input, *, atol=None, rtol=None, hermitian=False, out=None", "How many singular values count.",
      [](const Tensor& a, const OptOperand& atol, const OptOperand& rtol, bool hermitian) {
        return linalg::matrix_rank(a, atol, rtol, hermitian);
      });
  def(kFunction, "linalg_matrix_rank", "input, tol, hermitian=False, *, out=None", "How many singular values are above tol.",
      [](const Tensor& a, const Operand& tol, bool hermitian) { return linalg::matrix_rank(a, tol, Operand(0.0), hermitian); });
  def(kFunction, "linalg_cond", "input, p=None, *, out=None", "The condition number in a norm.",
      [](const Tensor& a, OptNumber p) { return linalg::cond(a, p); });
  def(kFunction, "linalg_cond", "input, p, *, out=None", "The condition number in a norm.",
      [](const Tensor& a, std::string_view p) { return linalg::cond(a, p); });
}

double order_of(const char* op, const Scalar& ord) {
  if (ord.is_complex()) throw RuntimeError("{}: Expected a non-complex scalar as the order of norm.", op);
  return ord.to_double();
}

void define_matrix_norms() {
  def(kFunction, "linalg_vector_norm", "input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None", "The norm of vectors.",
      [](const Tensor& t, const Scalar& ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return linalg::vector_norm(t, order_of("linalg.vector_norm", ord), dim, keepdim, dtype);
      });
  def(kFunction, "linalg_matrix_norm", "input, ord, dim=None, keepdim=False, *, dtype=None, out=None", "The norm of matrices.",
      [](const Tensor& t, const Scalar& ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return linalg::matrix_norm(t, order_of("linalg.matrix_norm", ord), dim.value_or(kLast), keepdim, dtype);
      });
  def(kFunction, "linalg_matrix_norm", "input, ord='fro', dim=None, keepdim=False, *, dtype=None, out=None", "The norm of matrices.",
      [](const Tensor& t, std::string_view ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return linalg::matrix_norm(t, ord, dim.value_or(kLast), keepdim, dtype);
      });
  def(kFunction, "linalg_norm", "input, ord=None, dim=None, keepdim=False, *, dtype=None, out=None", "The norm of vectors or matrices.",
      [](const Tensor& t, const std::optional<Scalar>& ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return linalg::norm(t, ord ? OptNumber(order_of("linalg.matrix_norm", *ord)) : OptNumber(), dim, keepdim, dtype);
      });
  def(kFunction, "linalg_norm", "input, ord, dim=None, keepdim=False, *, dtype=None, out=None", "The norm of matrices.",
      [](const Tensor& t, std::string_view ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return linalg::norm(t, ord, dim, keepdim, dtype);
      });
  def(kFunction, "nuclear_norm", "input, dim=None, keepdim=False, *, out=None", "The sum of the singular values.",
      [](const Tensor& t, const OptionalDims& dim, bool keepdim) { return linalg::matrix_norm(t, "nuc", dim.value_or(kLast), keepdim); });
  def(kFunction, "frobenius_norm", "input, dim, keepdim=False, *, out=None", "The root of the sum of squares.",
      [](const Tensor& t, const Dims& dim, bool keepdim) { return linalg::vector_norm(t, 2, dim, keepdim); });
}

void define_matrix_products() {
  const auto power = [](const Tensor& a, int64_t n) { return linalg::matrix_power(a, n); };
  const auto exponential = [](const Tensor& a) { return linalg::matrix_exp(a); };
  def(kFunction, "linalg_matrix_power", "input, n, *, out=None", "The n-th power of a matrix.", power);
  def(kBoth, "matrix_power", "input, n, *, out=None", "The n-th power of a matrix.", power);
  def(kFunction, "linalg_matrix_exp", "input", "The exponential of a matrix.", exponential);
  def(kBoth, "matrix_exp", "input", "The exponential of a matrix.", exponential);
  def(kFunction, "linalg_multi_dot", "tensors, *, out=None", "The product of matrices, in the cheapest order.",
      [](const std::vector<Tensor>& tensors) { return linalg::multi_dot(tensors); });
  def(kFunction, "linalg_vander", "x, *, N=None", "Powers of the elements, 0 first.",
      [](const Tensor& x, OptInt n) { return linalg::vander(x, n); });
  def(kFunction, "linalg_cross", "input, other, *, dim=-1, out=None", "The cross product along a dimension of size 3.",
      [](const Tensor& a, const Tensor& b, int64_t dim) { return linalg::cross(a, b, dim); });
  def(kFunction, "linalg_vecdot", "x, y, *, dim=-1, out=None", "Sums of products along a dimension.",
      [](const Tensor& x, const Tensor& y, int64_t dim) { return linalg::vecdot(x, y, dim); });
  def(kFunction, "linalg_matmul", "input, other, *, out=None", "The product of matrices.",
      [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  def(kFunction, "linalg_diagonal", "A, *, offset=0, dim1=-2, dim2=-1", "Diagonals, a view.",
      [](const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) { return a.diagonal(offset, dim1, dim2); });
  def(kFunction, "linalg_tensorinv", "input, ind=2, *, out=None", "The inverse under tensordot.",
      [](const Tensor& a, int64_t ind) { return linalg::tensorinv(a, ind); });
  def(kFunction, "linalg_tensorsolve", "input, other, dims=None, *, out=None", "X with tensordot(A, X) = B.",
      [](const Tensor& a, const Tensor& b, const OptionalDims& dims) { return linalg::tensorsolve(a, b, dims); });
}

}  // namespace

void define_linalg() {
  define_solving();
  define_lu();
  define_symmetric();
  define_orthogonal();
  define_ranks();
  define_matrix_norms();
  define_matrix_products();
}

}  // namespace naru::py
