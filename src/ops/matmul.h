// Matrix products without autograd.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

// Throws RuntimeError with PyTorch's text unless both have one dtype that can be multiplied, and live on one device.
void check_factors(const Tensor& a, const Tensor& b, const char* op);
// "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"; addmm where something is added
[[noreturn]] void throw_not_multiplicable(const Dims& a, const Dims& b, const char* op, bool adds = false);

// a b (+ bias) for matrices (m, k) and (k, n), or batches of them (batch, m, k), (batch, k, n); with b_transposed b is (n, k). The
// shapes must fit. Any strides will do: a transposed view is not copied. bias: n elements in the last dimension, or undefined.
Tensor product_of(const Tensor& a, const Tensor& b, const Tensor& bias, bool b_transposed, const char* op);

// The product of matrices of int8 or uint8, in int32.
Tensor int_mm(const Tensor& a, const Tensor& b);

}  // namespace naru::ops
