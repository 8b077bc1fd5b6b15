// What naru/other_names.h does not say in a line.
#include "naru/other_names.h"

namespace naru {

Tensor fliplr(const Tensor& t) {
  if (t.dim() < 2) throw RuntimeError("Input must be >= 2-d. (fliplr: input has {} dimensions)", t.dim());
  return flip(t, {1});
}
Tensor flipud(const Tensor& t) {
  if (t.dim() < 1) throw RuntimeError("Input must be >= 1-d. (flipud: input has no dimensions)");
  return flip(t, {0});
}
Tensor atleast_1d(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }
Tensor atleast_2d(const Tensor& t) { return t.dim() < 2 ? t.reshape({1, -1}) : t; }
Tensor atleast_3d(const Tensor& t) {
  if (t.dim() < 2) return t.reshape({1, -1, 1});
  return t.dim() == 2 ? t.unsqueeze(-1) : t;
}

namespace special {

Tensor chebyshev_polynomial_t(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_t", x, n); }
Tensor chebyshev_polynomial_u(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_u", x, n); }
Tensor chebyshev_polynomial_v(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_v", x, n); }
Tensor chebyshev_polynomial_w(const Operand& x, const Operand& n) { return orthogonal_polynomial("chebyshev_polynomial_w", x, n); }
Tensor hermite_polynomial_h(const Operand& x, const Operand& n) { return orthogonal_polynomial("hermite_polynomial_h", x, n); }
Tensor hermite_polynomial_he(const Operand& x, const Operand& n) { return orthogonal_polynomial("hermite_polynomial_he", x, n); }
Tensor laguerre_polynomial_l(const Operand& x, const Operand& n) { return orthogonal_polynomial("laguerre_polynomial_l", x, n); }
Tensor legendre_polynomial_p(const Operand& x, const Operand& n) { return orthogonal_polynomial("legendre_polynomial_p", x, n); }
Tensor shifted_chebyshev_polynomial_t(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_t", x, n);
}
Tensor shifted_chebyshev_polynomial_u(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_u", x, n);
}
Tensor shifted_chebyshev_polynomial_v(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_v", x, n);
}
Tensor shifted_chebyshev_polynomial_w(const Operand& x, const Operand& n) {
  return orthogonal_polynomial("shifted_chebyshev_polynomial_w", x, n);
}

}  // namespace special
}  // namespace naru
