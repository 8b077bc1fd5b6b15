// Matrix products. Nothing is recorded for autograd.
#pragma once

#include <array>
#include <optional>

#include "naru/tensor.h"

namespace naru::ops {

// Throws RuntimeError with PyTorch's text unless both have the same dtype, products support it, and both are on one device.
void check_factors(const Tensor& a, const Tensor& b, const char* op);
// Throws "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"; names addmm if `adds`.
[[noreturn]] void throw_not_multiplicable(const Dims& a, const Dims& b, const char* op, bool adds = false);

// a b (+ bias) for matrices (m, k) and (k, n), or batches (batch, m, k) and (batch, k, n); with b_transposed, b is (n, k). The caller checks the
// shapes. Any strides are supported: a transposed view is not copied. bias: n elements along the last dimension, or undefined.
Tensor product_of(const Tensor& a, const Tensor& b, const Tensor& bias, bool b_transposed, const char* op);

// matmul of factors of which some are batched.
Tensor batched_product(const Tensor& a, const Tensor& b);
// beta * c + alpha * product; a beta of 0 ignores c, even if it is not finite.
Tensor scaled_sum(const Tensor& c, const Tensor& product, Scalar beta, Scalar alpha);

// What a bilinear operator of a and b saves for its gradients: a derivative by one factor takes the other, so an undefined tensor stands for a factor
// that none takes, which then may be overwritten.
std::array<const Tensor*, 2> factors_to_save(const Tensor& a, const Tensor& b);

// The product of int8 or uint8 matrices, in int32.
Tensor int_mm(const Tensor& a, const Tensor& b);
// The product of float8 matrices a (m, k) and b (k, n), whose elements stand for a * scale_a and b * scale_b: float32 scales of one element, or of
// (m, 1) and (1, n). Computes in float32, adds `bias` (n), if any, and rounds to `out`; a float8 result is divided by scale_result, if any.
Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, const Tensor& bias,
                 const Tensor& scale_result, std::optional<DType> out);

}  // namespace naru::ops
