#include "naru/nn/utils.h"

#include <algorithm>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "nn/text.h"
#include "ops/nn/update_batch.h"

namespace naru::nn::utils {

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, bool error_if_nonfinite) {
  if (tensors.empty()) return tensor(0.0);
  const NoGrad off;
  std::vector<Tensor> norms;
  for (const Tensor& t : tensors) norms.push_back(norm(t, norm_type).to(tensors[0].device()));
  const Tensor total = norm(stack(norms), norm_type);
  if (error_if_nonfinite && !total.isfinite().item<bool>())
    throw RuntimeError(
        "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and "
        "scale "
        "the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`",
        number_text(norm_type));
  return total;
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm) {
  const NoGrad off;
  // Do not branch on the value: on a device the host would have to wait for it.
  const Tensor factor = (Scalar(max_norm) / (total_norm + 1e-6)).clamp_max(1.0);
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (Tensor g = p.grad(); g.defined()) grads.push_back(std::move(g));
  ops::multiply_each(grads, factor);
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (Tensor g = p.grad(); g.defined()) grads.push_back(std::move(g));
  Tensor total = get_total_norm(grads, norm_type, error_if_nonfinite);
  clip_grads_with_norm_(parameters, max_norm, total);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGrad off;
  for (const Tensor& p : parameters)
    if (Tensor g = p.grad(); g.defined()) g.clamp_(-clip_value, clip_value);
}

namespace {
void check_devices(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    if (p.device() != parameters[0].device())
      throw TypeError("Found two parameters on different devices, this is currently not supported.");
}
}  // namespace

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  check_devices(parameters);
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) parts.push_back(p.reshape({-1}));
  return cat(parts);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  check_devices(parameters);
  const NoGrad off;
  int64_t start = 0;
  for (const Tensor& p : parameters) start += p.numel();
  if (vector.dim() != 1 || vector.numel() < start)
    throw RuntimeError("vector_to_parameters: the parameters have {} elements, the vector has shape {}", start, vector.sizes().str());
  start = 0;
  for (const Tensor& p : parameters) {
    Tensor target = p;
    target.set_(vector.detach().narrow(0, start, p.numel()).view(p.sizes()));
    start += p.numel();
  }
}

std::pair<Tensor, Tensor> fuse_conv_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn, bool transpose) {
  if (weight.dim() < 2) throw RuntimeError("fuse_bn_weights: wanted a weight of 2 dimensions or more, got shape {}", weight.sizes().str());
  const NoGrad off;
  Tensor scale = rsqrt(bn.variance + bn.eps);
  if (bn.weight.defined()) scale = scale * bn.weight;
  Dims shape(static_cast<size_t>(weight.dim()), 1);
  shape[transpose ? 1 : 0] = -1;
  Tensor fused = ((bias.defined() ? bias - bn.mean : -bn.mean)) * scale;
  if (bn.bias.defined()) fused = fused + bn.bias;
  return {(weight * scale.reshape(shape)).to(weight.dtype()), fused.to(bias.defined() ? bias.dtype() : weight.dtype())};
}
std::pair<Tensor, Tensor> fuse_linear_bn_weights(const Tensor& weight, const Tensor& bias, const BatchNormState& bn) {
  return fuse_conv_bn_weights(weight, bias, bn, false);
}

namespace rnn {

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  if (padding_side != "left" && padding_side != "right")
    throw RuntimeError("Expected padding_side to be one of left or right, but got {}.", padding_side);
  if (sequences.empty()) throw RuntimeError("pad_sequence: received an empty list of sequences");
  int64_t longest = 0;
  for (const Tensor& s : sequences) longest = std::max(longest, s.size(0));
  std::vector<Tensor> rows;
  for (const Tensor& s : sequences) {
    const int64_t missing = longest - s.size(0);
    if (missing == 0) {
      rows.push_back(s);
      continue;
    }
    Dims shape = s.sizes();
    shape[0] = missing;
    const Tensor edge = full(shape, padding_value, Options(s.dtype(), s.device()));
    rows.push_back(padding_side == "right" ? cat({s, edge}) : cat({edge, s}));
  }
  return stack(rows, batch_first ? 0 : 1);
}

std::vector<Tensor> unpad_sequence(const Tensor& padded, const Tensor& lengths, bool batch_first) {
  const Tensor rows = batch_first ? padded : padded.transpose(0, 1);
  const std::vector<int64_t> all = lengths.to_ints();
  std::vector<Tensor> list;
  for (size_t i = 0; i < all.size() && static_cast<int64_t>(i) < rows.size(0); ++i)
    list.push_back(rows.select(0, static_cast<int64_t>(i)).narrow(0, 0, all[i]));
  return list;
}

}  // namespace rnn
}  // namespace naru::nn::utils
