#include <cmath>

#include "naru/autograd.h"
#include "naru/nn.h"

namespace naru::nn {

void kaiming_uniform_(const Tensor& t, double a) {
  if (t.dim() < 2)
    throw ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions (shape {})", t.sizes().str());
  if (t.numel() == 0) return;
  const double fan_in = static_cast<double>(t.numel() / t.size(0));
  // Rounded step by step as torch.nn.init does, so that both front ends draw the same numbers.
  const double std = std::sqrt(2.0 / (1 + a * a)) / std::sqrt(fan_in);
  const double bound = std::sqrt(3.0) * std;
  const NoGrad no_grad;
  uniform_(t, -bound, bound);
}

Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias, const Options& options) {
  weight = register_parameter("weight", empty({out_features, in_features}, options));
  bias = register_parameter("bias", with_bias ? empty({out_features}, options) : Tensor());
  reset_parameters();
}

void Linear::reset_parameters() {
  kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t in = weight.size(1);
  const double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  const NoGrad no_grad;
  if (bias.defined()) uniform_(bias, -bound, bound);
}

std::string Linear::details() const {
  return fmt::format("in_features={}, out_features={}, bias={}", weight.size(1), weight.size(0), bias.defined() ? "True" : "False");
}

Embedding::Embedding(int64_t count, int64_t width, int64_t padding_idx, const Options& options) : padding_(padding_idx) {
  if (padding_idx < -1 || padding_idx >= count)
    throw ValueError("Embedding: padding_idx must be within num_embeddings (got {}, {} embeddings)", padding_idx, count);
  weight = register_parameter("weight", empty({count, width}, options));
  reset_parameters();
}

void Embedding::reset_parameters() {
  const NoGrad no_grad;
  normal_(weight, 0, 1);
  if (padding_ >= 0) weight[padding_].zero_();
}

std::string Embedding::details() const {
  return fmt::format("{}, {}", weight.size(0), weight.size(1)) + (padding_ >= 0 ? fmt::format(", padding_idx={}", padding_) : "");
}

LayerNorm::LayerNorm(Dims normalized_shape, double eps, bool elementwise_affine, bool with_bias, const Options& options)
    : shape_(std::move(normalized_shape)), eps_(eps) {
  weight = register_parameter("weight", elementwise_affine ? ones(shape_, options) : Tensor());
  bias = register_parameter("bias", elementwise_affine && with_bias ? zeros(shape_, options) : Tensor());
}

std::string LayerNorm::details() const {
  std::string shape = shape_.str();  // as a tuple
  shape = "(" + shape.substr(1, shape.size() - 2) + (shape_.size() == 1 ? ",)" : ")");
  return fmt::format("{}, eps={}, elementwise_affine={}", shape, eps_, weight.defined() ? "True" : "False");
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", p);
}

std::string Dropout::details() const { return fmt::format("p={}, inplace=False", p_); }

std::string Flatten::details() const { return fmt::format("start_dim={}, end_dim={}", start_, end_); }

CrossEntropyLoss::CrossEntropyLoss(Reduction reduction, double label_smoothing, Tensor weight, int64_t ignore_index)
    : reduction_(reduction), label_smoothing_(label_smoothing), weight_(std::move(weight)), ignore_index_(ignore_index) {
  register_buffer("weight", weight_);
}

}  // namespace naru::nn
