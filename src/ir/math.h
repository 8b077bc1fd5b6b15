// The definitions of mathematics: functions as expressions over the primitives, for F32 and F64 values.
// Each says its error in ulp (measured by tests/cpp/ir/math_test.cpp). float16 and bfloat16 compute in F32.
#pragma once

#include "ir/expr.h"

namespace naru::ir {

V exp(V x);
V exp2(V x);
V expm1(V x);
V log(V x);
V log2(V x);
V log10(V x);
V log1p(V x);
V sin(V x);
V cos(V x);
V tan(V x);
V asin(V x);
V acos(V x);
V atan(V x);
V atan2(V y, V x);
V sinh(V x);
V cosh(V x);
V tanh(V x);
V asinh(V x);
V acosh(V x);
V atanh(V x);
V erf(V x);
V erfc(V x);
V erfinv(V x);
V lgamma(V x);
V digamma(V x);
V pow(V x, V y);       // C's special cases
V rsqrt(V x);          // 1 / sqrt(x)
V sigmoid(V x);        // 1 / (1 + exp(-x))
V softplus(V x);       // log(1 + exp(x)) without overflow
V pow_int(V x, V n);   // integers: x to the n by squaring, wrapping; n < 0 gives 0, but 1 for x = 1 and ±1 for x = -1

// NaN where either is NaN (torch.maximum, minimum).
V maximum(V a, V b);
V minimum(V a, V b);
V sign(V x);
// Integers: rounds toward -inf; x/0 = 0. Floats: Python's //, exactly as torch.floor_divide.
V floor_divide(V a, V b);
// Python's %: the sign of the divisor.
V remainder(V a, V b);

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four I32 words for the
// counter (I64 position, I64 offset) and the I64 key.
struct Words { V w[4]; };
Words philox(V counter, V offset, V key);
// From philox words: uniform in [0, 1) with 24 (F32) or 53 (F64) bits; standard normal by Box and Muller's formula.
V uniform01(const Words& words, VType type);
V normal01(const Words& words, VType type);

}  // namespace naru::ir
