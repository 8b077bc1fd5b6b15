// Normalization over batches, images, groups and channels, with PyTorch's semantics: input (N, C, ...); weight, bias and running statistics
// (C), or undefined. Throw RuntimeError for sizes that do not fit.
#pragma once

#include "naru/tensor.h"

namespace naru {

// (x - mean) / sqrt(variance + eps) * weight + bias per channel. training: uses the input's statistics, and moves the running statistics
// towards them by `momentum` (the variance with n / (n - 1)); else uses the running statistics.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// The same per image; use_input_stats corresponds to `training`.
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {}, const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1, double eps = 1e-5);
// x / sqrt(mean(x²) + eps) * weight over the last dimensions, which `normalized_shape` gives. The default eps is the epsilon of the type computed in.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {}, std::optional<double> eps = {});
// Statistics of each group of adjacent channels of each image; weight and bias per channel.
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
// x / (k + alpha * mean of x^2 over `size` adjacent channels)^beta
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace naru
