// PyTorch's alternative names for functions, and functions that are one call of another.
#pragma once

#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "naru/ops/special.h"

namespace naru {

inline Tensor absolute(const Operand& a) { return abs(a); }
inline Tensor arccos(const Operand& a) { return acos(a); }
inline Tensor arccosh(const Operand& a) { return acosh(a); }
inline Tensor arcsin(const Operand& a) { return asin(a); }
inline Tensor arcsinh(const Operand& a) { return asinh(a); }
inline Tensor arctan(const Operand& a) { return atan(a); }
inline Tensor arctanh(const Operand& a) { return atanh(a); }
inline Tensor expit(const Operand& a) { return sigmoid(a); }
inline Tensor fix(const Operand& a) { return trunc(a); }
inline Tensor negative(const Operand& a) { return neg(a); }
inline Tensor arctan2(const Operand& a, const Operand& b) { return atan2(a, b); }
inline Tensor divide(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor divide(const Operand& a, const Operand& b, std::optional<std::string_view> rounding_mode) { return div(a, b, rounding_mode); }
inline Tensor true_divide(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor multiply(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor subtract(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor subtract(const Operand& a, const Operand& b, Scalar alpha) { return sub(a, b, alpha); }
inline Tensor greater(const Operand& a, const Operand& b) { return gt(a, b); }
inline Tensor greater_equal(const Operand& a, const Operand& b) { return ge(a, b); }
inline Tensor less(const Operand& a, const Operand& b) { return lt(a, b); }
inline Tensor less_equal(const Operand& a, const Operand& b) { return le(a, b); }
inline Tensor not_equal(const Operand& a, const Operand& b) { return ne(a, b); }
inline Tensor clip(const Operand& t, const Operand& low, const Operand& high) { return clamp(t, low, high); }
inline Tensor clip(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high = {}) {
  return clamp(t, low, high);
}
inline Tensor mvlgamma(const Tensor& t, int64_t p) { return special::multigammaln(t, p); }
// A copy with the imaginary parts negated.
inline Tensor conj_physical(const Tensor& t) { return conj(t); }

inline void absolute_(const Tensor& t) { t.abs_(); }
inline void negative_(const Tensor& t) { t.neg_(); }
inline void clip_(const Tensor& t, const Operand& low, const Operand& high) { t.clamp_(low, high); }
inline void divide_(const Tensor& t, const Operand& b) { t.div_(b); }
inline void true_divide_(const Tensor& t, const Operand& b) { t.div_(b); }
inline void multiply_(const Tensor& t, const Operand& b) { t.mul_(b); }
inline void subtract_(const Tensor& t, const Operand& b) { t.sub_(b); }

inline Tensor concat(const std::vector<Tensor>& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor concatenate(const std::vector<Tensor>& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor row_stack(const std::vector<Tensor>& tensors) { return vstack(tensors); }
inline Tensor moveaxis(const Tensor& t, int64_t from, int64_t to) { return t.movedim(from, to); }
inline Tensor moveaxis(const Tensor& t, const Dims& from, const Dims& to) { return movedim(t, from, to); }
inline Tensor swapaxes(const Tensor& t, int64_t a, int64_t b) { return t.transpose(a, b); }
inline Tensor swapdims(const Tensor& t, int64_t a, int64_t b) { return t.transpose(a, b); }
inline Tensor ravel(const Tensor& t) { return t.contiguous().view(Dims{-1}); }
inline Tensor ger(const Tensor& a, const Tensor& b) { return outer(a, b); }
inline Tensor trapz(const Tensor& y, const Operand& dx = 1, int64_t dim = -1) { return trapezoid(y, dx, dim); }
inline Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim = -1) { return trapezoid(y, x, dim); }
inline std::vector<Tensor> split_with_sizes(const Tensor& t, const Dims& sizes, int64_t dim = 0) { return split(t, sizes, dim); }
// (count, rank) int64: the indices of nonzero elements.
inline Tensor argwhere(const Tensor& t) { return nonzero(t); }
// Sorted along the first dimension.
inline Tensor msort(const Tensor& t) { return sort(t, 0).first; }
inline bool is_same_size(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes(); }
// The conjugate transpose of matrices. Throws RuntimeError for 1-D tensors.
inline Tensor adjoint(const Tensor& t) { return mH(t); }
// fliplr reverses dimension 1 (RuntimeError below 2 dimensions), flipud dimension 0 (RuntimeError for 0-d tensors).
Tensor fliplr(const Tensor& t);
Tensor flipud(const Tensor& t);
// Views with at least 1, 2 or 3 dimensions. A vector becomes (1, n) and (1, n, 1), a matrix (n, m, 1).
Tensor atleast_1d(const Tensor& t);
Tensor atleast_2d(const Tensor& t);
Tensor atleast_3d(const Tensor& t);
// Einstein summation: einsum("bij,bjk->bik", {a, b}) sums products of the operands over the dimensions that the result lacks. "..." stands
// for dimensions that broadcast. Without an arrow, the result has the letters that occur once, in alphabetical order. Throws RuntimeError
// if the equation doesn't fit the operands.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace naru

// torch.special's names for existing functions, and a function for each orthogonal polynomial.
namespace naru::special {

using naru::digamma;
using naru::erf;
using naru::erfc;
using naru::erfinv;
using naru::exp2;
using naru::expit;
using naru::expm1;
using naru::log1p;
using naru::log_softmax;
using naru::logit;
using naru::logsumexp;
using naru::polygamma;
using naru::round;
using naru::sinc;
using naru::softmax;
using naru::xlogy;
using naru::zeta;
inline Tensor gammaln(const Operand& a) { return lgamma(a); }
inline Tensor psi(const Operand& a) { return digamma(a); }
Tensor chebyshev_polynomial_t(const Operand& x, const Operand& n);
Tensor chebyshev_polynomial_u(const Operand& x, const Operand& n);
Tensor chebyshev_polynomial_v(const Operand& x, const Operand& n);
Tensor chebyshev_polynomial_w(const Operand& x, const Operand& n);
Tensor hermite_polynomial_h(const Operand& x, const Operand& n);
Tensor hermite_polynomial_he(const Operand& x, const Operand& n);
Tensor laguerre_polynomial_l(const Operand& x, const Operand& n);
Tensor legendre_polynomial_p(const Operand& x, const Operand& n);
Tensor shifted_chebyshev_polynomial_t(const Operand& x, const Operand& n);
Tensor shifted_chebyshev_polynomial_u(const Operand& x, const Operand& n);
Tensor shifted_chebyshev_polynomial_v(const Operand& x, const Operand& n);
Tensor shifted_chebyshev_polynomial_w(const Operand& x, const Operand& n);

}  // namespace naru::special
