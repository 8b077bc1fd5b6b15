// torch.special's functions that are not in the elementwise table. They compute in float64 and round once (integers convert to the default
// dtype), and are differentiable.
#pragma once

#include <string_view>
#include <vector>

#include "naru/tensor.h"

namespace naru::special {

Tensor erfcx(const Tensor& t);                       // exp(t²) erfc(t)
Tensor ndtr(const Tensor& t);                        // the normal distribution function: the probability of a value below t
Tensor log_ndtr(const Tensor& t);                    // its logarithm
Tensor ndtri(const Tensor& t);                       // its inverse; NaN outside of [0, 1]
Tensor entr(const Tensor& t);                        // -t log(t); 0 at 0, -inf below
Tensor xlog1py(const Operand& x, const Operand& y);  // x log(1 + y); 0 where x is 0, unless y is NaN. One of them is a tensor
Tensor multigammaln(const Tensor& t, int64_t p);     // the log of the p-dimensional gamma function. RuntimeError for p < 1
// Modified Bessel functions of the first kind of order 0 and 1; i0e and i1e are multiplied by exp(-|t|).
Tensor i0(const Tensor& t);
Tensor i0e(const Tensor& t);
Tensor i1(const Tensor& t);
Tensor i1e(const Tensor& t);

// Bessel functions of the first and second kind, NaN at infinities; modified ones (the first kind like i0, i1, but NaN at infinities; the
// second kind NaN for t < 0; "scaled" ones multiplied by exp(t)); the spherical one, sin(t) / t; Airy's function Ai. Throw
// NotImplementedError for 16-bit types.
Tensor bessel_j0(const Tensor& t);
Tensor bessel_j1(const Tensor& t);
Tensor bessel_y0(const Tensor& t);
Tensor bessel_y1(const Tensor& t);
Tensor modified_bessel_i0(const Tensor& t);
Tensor modified_bessel_i1(const Tensor& t);
Tensor modified_bessel_k0(const Tensor& t);
Tensor modified_bessel_k1(const Tensor& t);
Tensor scaled_modified_bessel_k0(const Tensor& t);
Tensor scaled_modified_bessel_k1(const Tensor& t);
Tensor spherical_bessel_j0(const Tensor& t);
Tensor airy_ai(const Tensor& t);

// The regularized lower and upper incomplete gamma functions of a and x, broadcast: the integrals of t^(a - 1) exp(-t) / Gamma(a) from 0 to
// x, and from x to infinity. Throw NotImplementedError for integers, and for the derivative with respect to a.
Tensor gammainc(const Tensor& a, const Tensor& x);
Tensor gammaincc(const Tensor& a, const Tensor& x);

// The polynomial of order n (truncated to an integer; 0 if negative) at x, computed by recurrence. name: "chebyshev_polynomial_t" ...;
// orthogonal_polynomials() lists the names.
Tensor orthogonal_polynomial(std::string_view name, const Operand& x, const Operand& n);
std::vector<const char*> orthogonal_polynomials();

}  // namespace naru::special

namespace naru {

using special::i0;
inline Tensor igamma(const Tensor& a, const Tensor& x) { return special::gammainc(a, x); }
inline Tensor igammac(const Tensor& a, const Tensor& x) { return special::gammaincc(a, x); }

}  // namespace naru
