// Pooling of 1 to 3 dimensions, as PyTorch has it: input (N, C, d1...) or (C, d1...). Lists hold a number for each dimension, or one for all; no
// stride means the kernel's size. Sizes are (d + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1, rounded down, or up with ceil_mode where
// the last window still begins within the input or its padding in front. RuntimeError for what does not fit.
#pragma once

#include <optional>
#include <utility>

#include "naru/random.h"
#include "naru/tensor.h"

namespace naru {

// (values, their row-major places among d1... (int64)); a NaN counts as greatest. Of `n` spatial dimensions.
std::pair<Tensor, Tensor> max_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                                   const Dims& dilation = {1}, bool ceil_mode = false);
// count_include_pad: zeros of the padding count among what is divided by. divisor: divided by instead.
Tensor avg_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor = {});
// (N, C, out...): position p sees the elements from floor(p d / out) to ceil((p + 1) d / out).
Tensor adaptive_avg_pool(int64_t n, const Tensor& input, const Dims& output_size);
std::pair<Tensor, Tensor> adaptive_max_pool(int64_t n, const Tensor& input, const Dims& output_size);
// (sum of x^p)^(1/p) of each window.
Tensor lp_pool(int64_t n, const Tensor& input, double p, const Dims& kernel, const Dims& stride = {}, bool ceil_mode = false);
// Windows that begin at random places, which samples (N, C, n) in [0, 1) choose.
std::pair<Tensor, Tensor> fractional_max_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& output_size,
                                              const Tensor& samples);
// Zeros of the sizes given, with the elements of input at the places that indices name.
Tensor max_unpool(int64_t n, const Tensor& input, const Tensor& indices, const Dims& output_size);

inline Tensor max_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool(1, x, kernel, stride, padding, dilation, ceil_mode).first;
}
inline Tensor max_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool(2, x, kernel, stride, padding, dilation, ceil_mode).first;
}
inline Tensor max_pool3d(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                         const Dims& dilation = {1}, bool ceil_mode = false) {
  return max_pool(3, x, kernel, stride, padding, dilation, ceil_mode).first;
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
