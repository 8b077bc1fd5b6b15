// The mathematics of torch.special, as ir/math/math.h has that of C: expressions over the primitives, for F32 and F64 values. F32 by way of F64.
#pragma once

#include "ir/expr.h"

namespace naru::ir {

V erfcx(V x);      // exp(x * x) erfc(x)
V log_ndtr(V x);   // log(erfc(-x / sqrt(2)) / 2), the logarithm of the normal distribution function
V ndtr(V x);       // the normal distribution function
V ndtri(V x);      // its inverse
V entr(V x);       // -x log(x); 0 at 0, -inf below
V log_odds(V x);   // log(x / (1 - x)), the quotient rounded before
V bessel_i0(V x);  // modified Bessel functions of order 0 and 1
V bessel_i1(V x);
V bessel_i0e(V x);  // times exp(-|x|)
V bessel_i1e(V x);
// The neighbour of x on the side of y; y where both are equal.
V next_after(V x, V y);

}  // namespace naru::ir
