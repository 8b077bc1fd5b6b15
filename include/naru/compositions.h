// Functions that are a few others of naru/ops.h, as PyTorch has them: expressions only, so that gradients follow of themselves. Each throws what
// the functions it is made of throw, and what is said here.
#pragma once

#include <optional>
#include <utility>

#include "naru/tensor.h"

namespace naru {

// --- elementwise ----------------------------------------------------------------------------------------------------------------------
// The nearest number with so many decimals; of two, the one whose last digit is even. Negative: tens, hundreds ...
Tensor round(const Tensor& t, int64_t decimals);
// The power, computed in float64.
Tensor float_power(const Operand& base, const Operand& exponent);
Tensor rad2deg(const Tensor& t);
Tensor deg2rad(const Tensor& t);
// log(t / (1 - t)), of t limited to [eps, 1 - eps] where eps is given.
Tensor logit(const Tensor& t, std::optional<double> eps = {});
// NaN and infinities replaced; infinities by the type's greatest and least number unless others are given. Integers are copied.
Tensor nan_to_num(const Tensor& t, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});

// --- reducing -------------------------------------------------------------------------------------------------------------------------
// The lower median of all elements; NaN where one is NaN, and of no elements of a floating-point type.
Tensor median(const Tensor& t);
// (values, indices) along a dimension, which must not be empty (IndexError).
std::pair<Tensor, Tensor> median(const Tensor& t, int64_t dim, bool keepdim = false);

// --- vectors --------------------------------------------------------------------------------------------------------------------------
// (..., n, m): the p-norm distances of the rows (..., n, d) to the rows (..., m, d).
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);
// The cross product along a dimension of size 3: the first such one unless named.
Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim = {});
// Sums of products along the last dimension.
Tensor inner(const Tensor& a, const Tensor& b);
// beta * c + alpha * (matrix times vector), and the same for batches of matrices (see addmm).
Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

}  // namespace naru
