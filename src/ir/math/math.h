// The definitions of mathematics: functions as expressions over the primitives, for F32 and F64 values. Special values
// are C's (NaN, infinities, the sign of zero, denormals). float16 and bfloat16 compute in F32.
//
// The comment of a function states its greatest error in ulp, for F32 and for F64. tests/cpp/ir/math_test.cpp asserts these numbers over every
// float16, some four million float32 (all exponents, and the neighbourhoods where a formula changes) and 600,000 float64.
#pragma once

#include "ir/expr.h"

namespace naru::ir {

V exp(V x);         // 0.9 ulp; 0.9
V exp2(V x);        // 0.9 ulp; 0.9
V expm1(V x);       // 1.3 ulp; 1.8
V log(V x);         // 0.9 ulp; 0.9
V log2(V x);        // 1.1 ulp; 1.0
V log10(V x);       // 1.0 ulp; 1.1
V log1p(V x);       // 1.0 ulp; 0.9
V sin(V x);         // 0.9 ulp; 0.8. Every finite x is reduced exactly, here and below
V cos(V x);         // 0.9 ulp; 0.8
V tan(V x);         // 0.6 ulp; 2.3
V asin(V x);        // 1.4 ulp; 1.5
V acos(V x);        // 1.1 ulp; 1.1
V atan(V x);        // 1.3 ulp; 1.6
V atan2(V y, V x);  // 1.5 ulp; 1.7
V sinh(V x);        // 1.6 ulp; 1.6
V cosh(V x);        // 1.4 ulp; 1.3
V tanh(V x);        // 1.5 ulp; 1.5
V asinh(V x);       // 1.7 ulp; 1.7
V acosh(V x);       // 2.0 ulp; 1.9
V atanh(V x);       // 1.8 ulp; 1.6
V erf(V x);         // 1.2 ulp; 1.1
V erfc(V x);        // 0.6 ulp; 3.8. F32 is computed in F64
V normal_cdf(V x);  // within 8e-8 (F32), 3e-16 (F64) of the normal distribution function; F32: 0 below -5.6, 1 above
V erfinv(V x);      // 2.5 ulp; 3.5
V lgamma(V x);      // 0.6 ulp; 3.0. F32 is computed in F64. F64, x < 0: 7 units of 2^-53 near its zeros
V zeta(V s, V q);   // sum over k >= 0 of 1 / (q + k)^s. Computed in F64; a few units of 2^-53. NaN where q < -3, unless s is 2 or 3
V digamma(V x);     // 0.6 ulp; 32. F32 is computed in F64. F64: near its zeros, 32 units of 2^-53
V pow(V x, V y);    // 0.6 ulp; 1.0. C's special cases
V rsqrt(V x);       // 1.5 ulp; 1.5. 1 / sqrt(x)
V sigmoid(V x);     // 1.8 ulp; 1.8. 1 / (1 + exp(-x)), without overflow
V softplus(V x);    // 1.5 ulp; 1.5. log(1 + exp(x)), without overflow
// Integers: x to the n by squaring, wrapping. n < 0 gives 0, except 1 for x = 1 and ±1 for x = -1.
V pow_int(V x, V n);

// NaN if either is NaN (torch.maximum, torch.minimum).
V maximum(V a, V b);
V minimum(V a, V b);
// -1, 0 or 1; 0 for NaN, as in PyTorch.
V sign(V x);
// Integers: rounds toward -inf; x/0 = 0. Floats: Python's //, exactly as torch.floor_divide.
V floor_divide(V a, V b);
// sqrt(x * x + y * y), scaled where the squares would overflow or underflow; infinity if either is infinite, even if the other is NaN.
V hypot(V x, V y);
// Python's %: the sign of the divisor.
V remainder(V a, V b);

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four I32 words
// for the counter (I64 position, I64 offset) and the I64 key.
struct Words {
  V w[4];
};
Words philox(V counter, V offset, V key);
// Random numbers of the element at position i (I64): uniform in [0, 1) with 24 (F32) or 53 (F64) bits; standard normal by the Box-Muller formula.
// F32: the four elements from a multiple of 4 on share the words of one counter, so that a device that computes four at a time makes them once: each
// takes a word, or two elements the radius and the angle of two words. F64: each element has a counter of its own.
V uniform01(V i, V key, V offset, VType type);
V normal01(V i, V key, V offset, VType type);
// -log(1 - u), 0 <= u < 1
V exponential_of(V u);

}  // namespace naru::ir
