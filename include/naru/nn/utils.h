// torch.nn.utils: gradient clipping, parameters as one vector, batch norm fusion, sequence padding.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru::nn::utils {

// The norm of all tensors as one vector, on the first tensor's device; 0 for an empty list. error_if_nonfinite: throws RuntimeError if it
// is not finite.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2, bool error_if_nonfinite = false);
// Multiplies the gradients in place by max_norm / total_norm if that is below 1.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm);
// Scales all gradients in place so that their norm as one vector is at most max_norm; returns the norm before. Does not wait for the
// device.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2, bool error_if_nonfinite = false);
// Clamps every gradient element in place to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

// Concatenates the elements of all parameters into a vector. Throws TypeError for parameters on different devices.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
// Makes each parameter a view of its part of the vector, in order; they share its memory afterwards. Throws RuntimeError if the vector is
// too short.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

// A batch norm's running statistics in evaluation mode, weight and bias (either may be undefined).
struct BatchNormState {
  Tensor mean, variance, weight = {}, bias = {};
  double eps = 1e-5;
};
// (weight, bias) of a (transposed) convolution or a linear layer, fused with the batch norm that follows. bias may be undefined.
std::pair<Tensor, Tensor> fuse_conv_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn, bool transpose = false);
std::pair<Tensor, Tensor> fuse_linear_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn);

namespace rnn {

// Stacks tensors (L_i, ...) as (max L, N, ...), or (N, max L, ...) with batch_first, padded with padding_value. padding_side: "right" or
// "left". Throws RuntimeError for other values, and for an empty list.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
// The inverse of pad_sequence: the sequences truncated to their lengths.
std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first = false);

}  // namespace rnn
}  // namespace naru::nn::utils
