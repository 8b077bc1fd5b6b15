// torch.nn.utils: gradients clipped, parameters as one vector, sequences padded.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru::nn::utils {

// The norm of all tensors taken as one vector, on the first one's device; 0 for none. RuntimeError where it is not finite and must be.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2, bool error_if_nonfinite = false);
// Scales the gradients, in place, by max_norm / total_norm where that is below 1.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm);
// Scales all gradients, in place, so that their norm as one vector is at most max_norm; returns the norm before. The host does not wait for it.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2, bool error_if_nonfinite = false);
// Holds every element of the gradients, in place, between -clip_value and clip_value.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

// The elements of all parameters, one after the other, in one dimension. TypeError for parameters on different devices.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
// Gives each parameter its part of the vector, in order; they share its memory from now on. RuntimeError where it has too few elements.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

// The running statistics of a batch norm in evaluation, its weight and its bias (either may be undefined).
struct BatchNormState {
  Tensor mean, variance, weight = {}, bias = {};
  double eps = 1e-5;
};
// (weight, bias) of a convolution, or a transposed one, and of a linear layer, with the batch norm behind it taken in. bias may be undefined.
std::pair<Tensor, Tensor> fuse_conv_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn, bool transpose = false);
std::pair<Tensor, Tensor> fuse_linear_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn);

namespace rnn {

// Tensors (L_i, ...) stacked as (max L, N, ...), or (N, max L, ...) with batch_first, the rest filled. padding_side: "right" or "left". RuntimeError for
// other words, and for no sequences.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
// The sequences of pad_sequence, cut back to their lengths.
std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first = false);

}  // namespace rnn
}  // namespace naru::nn::utils
