// Pooling in 1 to 3 dimensions, with PyTorch's semantics: input (N, C, d1...) or (C, d1...). Lists have one entry per dimension, or one for
// all; the default stride is the kernel size. Output sizes are (d + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1, rounded down,
// or with ceil_mode up, if the last window still begins within the input or its left padding. Throw RuntimeError for sizes that do not fit.
#pragma once

#include <optional>
#include <utility>

#include "naru/random.h"
#include "naru/tensor.h"

namespace naru {

// Over `n` spatial dimensions: (values, int64 flat indices into d1...). NaN counts as the greatest value.
std::pair<Tensor, Tensor> max_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                                   const Dims& dilation = {1}, bool ceil_mode = false);
// The values alone, which takes less memory for the gradient on some devices.
Tensor max_pool_values(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                       const Dims& dilation = {1}, bool ceil_mode = false);
// count_include_pad: the divisor counts padding. divisor: replaces the divisor.
Tensor avg_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor = {});
// (N, C, out...): output position p covers the elements from floor(p d / out) to ceil((p + 1) d / out).
Tensor adaptive_avg_pool(int64_t n, const Tensor& input, const Dims& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool(int64_t n, const Tensor& input, const Dims& output_size);
// (sum of x^p)^(1/p) of each window.
Tensor lp_pool(int64_t n, const Tensor& input, double p, const Dims& kernel, const Dims& stride = {}, bool ceil_mode = false);
// Windows at random positions, determined by samples (N, C, n) in [0, 1).
std::pair<Tensor, Tensor> fractional_max_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& output_size,
                                              const Tensor& samples);
// Zeros of the given sizes, with the elements of input at the positions in indices.
Tensor max_unpool(int64_t n, const Tensor& input, const Tensor& indices, const Dims& output_size);

inline Tensor max_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool_values(1, x, kernel, stride, padding, dilation, ceil_mode);
}
inline Tensor max_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool_values(2, x, kernel, stride, padding, dilation, ceil_mode);
}
inline Tensor max_pool3d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool_values(3, x, kernel, stride, padding, dilation, ceil_mode);
}
inline Tensor avg_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0}, bool ceil_mode = false,
                         bool count_include_pad = true) {
  return avg_pool(1, x, kernel, stride, padding, ceil_mode, count_include_pad);
}
inline Tensor avg_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0}, bool ceil_mode = false,
                         bool count_include_pad = true, std::optional<int64_t> divisor = {}) {
  return avg_pool(2, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
}
inline Tensor avg_pool3d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0}, bool ceil_mode = false,
                         bool count_include_pad = true, std::optional<int64_t> divisor = {}) {
  return avg_pool(3, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
}
inline Tensor adaptive_avg_pool1d(const Tensor& x, const Dims& output_size) { return adaptive_avg_pool(1, x, output_size); }
inline Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& output_size) { return adaptive_avg_pool(2, x, output_size); }
inline Tensor adaptive_avg_pool3d(const Tensor& x, const Dims& output_size) { return adaptive_avg_pool(3, x, output_size); }

}  // namespace naru
