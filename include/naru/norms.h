// Normalisation over images and positions, as PyTorch has it: input (N, C, ...). weight and bias (C), running statistics (C): undefined where there are
// none. RuntimeError where sizes do not fit.
#pragma once

#include "naru/tensor.h"

namespace naru {

// (x - mean) / sqrt(variance + eps) * weight + bias for each channel. training: statistics of the input, which the running ones are moved towards by
// `momentum` (the variance with n / (n - 1)); else the running ones.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// The same for each image by itself; use_input_stats as `training`.
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {}, const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1, double eps = 1e-5);
// Statistics of each group of neighbouring channels of each image; weight and bias of each channel.
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
// x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace naru
