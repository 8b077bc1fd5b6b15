// Convolutions of 1 to 3 dimensions, with PyTorch's semantics. Errors name input, weight, and the expected shape (RuntimeError).
//   input (N, C, d1...) or (C, d1...), weight (O, C / groups, k1...), bias (O) or undefined -> (N, O, e1...),
//   e = (d + 2 * padding - dilation * (k - 1) - 1) / stride + 1
// Transposed: weight (C, O / groups, k1...), e = (d - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.
// Lists have one entry per dimension, or one for all. The result is channels_last if input or weight is.
#pragma once

#include <string>
#include <string_view>

#include "naru/tensor.h"

namespace naru {

// Zero padding: a number per dimension, "valid" (none), or "same" (keeps the sizes; stride 1 only).
struct ConvPadding {
  Dims amounts{0};
  std::string mode;  // empty: use amounts
  ConvPadding() = default;
  ConvPadding(int64_t n) : amounts{n} {}
  ConvPadding(int n) : amounts{n} {}
  ConvPadding(Dims list) : amounts(std::move(list)) {}
  ConvPadding(std::initializer_list<Dims::Entry> list) : amounts(list) {}
  ConvPadding(const char* word) : mode(word) {}
  ConvPadding(std::string_view word) : mode(word) {}
};

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1}, const ConvPadding& padding = {},
              const Dims& dilation = {1}, int64_t groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1}, const ConvPadding& padding = {},
              const Dims& dilation = {1}, int64_t groups = 1);
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1}, const ConvPadding& padding = {},
              const Dims& dilation = {1}, int64_t groups = 1);
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1},
                        const Dims& padding = {0}, const Dims& output_padding = {0}, int64_t groups = 1, const Dims& dilation = {1});
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1},
                        const Dims& padding = {0}, const Dims& output_padding = {0}, int64_t groups = 1, const Dims& dilation = {1});
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, const Dims& stride = {1},
                        const Dims& padding = {0}, const Dims& output_padding = {0}, int64_t groups = 1, const Dims& dilation = {1});
// Normal or transposed, with the number of dimensions of input and weight; both are batched.
Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, const Dims& stride, const Dims& padding,
                   const Dims& dilation, bool transposed, const Dims& output_padding, int64_t groups);
// Convolution over time, the first dimension: input (T, N, C), weight (k, C, O), bias (O) -> (T + 2 * padding - k + 1, N, O). Throws
// RuntimeError for other shapes.
Tensor conv_tbc(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t padding = 0);

}  // namespace naru
