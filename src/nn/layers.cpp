#include <fmt/format.h>

#include <cmath>

#include "naru/autograd.h"
#include "naru/nn.h"
#include "nn/text.h"

namespace naru::nn {
namespace {

// Uniform in ± 1 / sqrt(n).
void draw(const Tensor& t, int64_t n) {
  if (!t.defined()) return;
  const double bound = n > 0 ? 1 / std::sqrt(static_cast<double>(n)) : 0;
  init::uniform_(t, -bound, bound);
}

}  // namespace

void kaiming_uniform_(const Tensor& t, double a) {
  if (t.dim() < 2) init::fan_in_and_fan_out(t);  // throws the error
  if (t.numel()) init::kaiming_uniform_(t, a);
}

Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias, const Options& options) {
  weight = register_parameter("weight", empty({out_features, in_features}, options));
  bias = register_parameter("bias", with_bias ? empty({out_features}, options) : Tensor());
  reset_parameters();
}
void Linear::reset_parameters() {
  kaiming_uniform_(weight, std::sqrt(5.0));
  draw(bias, weight.size(1));
}
std::string Linear::details() const {
  return fmt::format("in_features={}, out_features={}, bias={}", weight.size(1), weight.size(0), bool_text(bias.defined()));
}
std::shared_ptr<Module> Linear::remake() const { return std::make_shared<Linear>(weight.size(1), weight.size(0), bias.defined()); }

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, bool with_bias, const Options& options) {
  if (in1 <= 0) throw ValueError("in1_features must be > 0, but got {}", in1);
  weight = register_parameter("weight", empty({out, in1, in2}, options));
  bias = register_parameter("bias", with_bias ? empty({out}, options) : Tensor());
  reset_parameters();
}
Tensor Bilinear::operator()(const Tensor& a, const Tensor& b) {
  return with_hooks([this](const Tensor& x, const Tensor& y) { return forward(x, y); }, a, b);
}
void Bilinear::reset_parameters() {
  draw(weight, weight.size(1));
  draw(bias, weight.size(1));
}
std::string Bilinear::details() const {
  return fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", weight.size(1), weight.size(2), weight.size(0),
                     bool_text(bias.defined()));
}
std::shared_ptr<Module> Bilinear::remake() const {
  return std::make_shared<Bilinear>(weight.size(1), weight.size(2), weight.size(0), bias.defined());
}

Embedding::Embedding(int64_t count, int64_t width, int64_t padding_idx, const Options& options, std::optional<double> max_norm,
                     double norm_type, bool sparse)
    : padding_(padding_idx), max_norm_(max_norm), norm_type_(norm_type), sparse_(sparse) {
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
Tensor Embedding::forward(const Tensor& index) {
  if (!max_norm_) return embedding(weight, index, padding_, false, sparse_);
  return functional::embedding(index, weight, padding_ < 0 ? std::nullopt : std::optional(padding_), max_norm_, norm_type_, false, sparse_);
}
std::string Embedding::details() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  if (padding_ >= 0) text += fmt::format(", padding_idx={}", padding_);
  if (max_norm_) text += ", max_norm=" + number_text(*max_norm_);
  return text + (sparse_ ? ", sparse=True" : "");
}
std::shared_ptr<Module> Embedding::remake() const {
  return std::make_shared<Embedding>(weight.size(0), weight.size(1), padding_, Options(), max_norm_, norm_type_, sparse_);
}

EmbeddingBag::EmbeddingBag(int64_t count, int64_t width, Settings settings, const Options& options) : settings_(std::move(settings)) {
  if (const auto p = settings_.padding_idx; p && (*p < -count || *p >= count))
    throw ValueError("padding_idx must be within num_embeddings (EmbeddingBag: got {} of {})", *p, count);
  weight = register_parameter("weight", empty({count, width}, options));
  reset_parameters();
}
void EmbeddingBag::reset_parameters() {
  const NoGrad no_grad;
  normal_(weight, 0, 1);
  if (settings_.padding_idx) weight.select(0, *settings_.padding_idx).zero_();
}
Tensor EmbeddingBag::operator()(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights) {
  return with_hooks([this](const auto&... in) { return forward(in...); }, index, offsets, per_sample_weights);
}
Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights) {
  const Settings& s = settings_;
  return functional::embedding_bag(
      index, weight,
      {offsets, s.mode, per_sample_weights, s.include_last_offset, s.padding_idx, s.max_norm, s.norm_type, s.scale_grad_by_freq, s.sparse});
}
std::string EmbeddingBag::details() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  if (settings_.max_norm) text += ", max_norm=" + number_text(*settings_.max_norm);
  if (settings_.norm_type != 2) text += ", norm_type=" + number_text(settings_.norm_type);
  if (settings_.scale_grad_by_freq) text += ", scale_grad_by_freq=True";
  text += ", mode='" + settings_.mode + "'";
  if (settings_.padding_idx) text += fmt::format(", padding_idx={}", *settings_.padding_idx);
  return text;
}
std::shared_ptr<Module> EmbeddingBag::remake() const { return std::make_shared<EmbeddingBag>(weight.size(0), weight.size(1), settings_); }

LayerNorm::LayerNorm(DimList normalized_shape, double eps, bool elementwise_affine, bool with_bias, const Options& options)
    : shape_(std::move(normalized_shape)), eps_(eps) {
  weight = register_parameter("weight", elementwise_affine ? ones(shape_, options) : Tensor());
  bias = register_parameter("bias", elementwise_affine && with_bias ? zeros(shape_, options) : Tensor());
}
std::string LayerNorm::details() const {
  return fmt::format("{}, eps={}, elementwise_affine={}, bias={}", tuple_text(shape_), number_text(eps_), bool_text(weight.defined()),
                     bool_text(bias.defined()));
}
std::shared_ptr<Module> LayerNorm::remake() const { return std::make_shared<LayerNorm>(shape_, eps_, weight.defined(), bias.defined()); }

RMSNorm::RMSNorm(DimList normalized_shape, std::optional<double> eps, bool elementwise_affine, const Options& options)
    : shape_(std::move(normalized_shape)), eps_(eps) {
  weight = register_parameter("weight", elementwise_affine ? ones(shape_, options) : Tensor());
}
std::string RMSNorm::details() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", tuple_text(shape_), eps_ ? number_text(*eps_) : "None",
                     bool_text(weight.defined()));
}
std::shared_ptr<Module> RMSNorm::remake() const { return std::make_shared<RMSNorm>(shape_, eps_, weight.defined()); }

}  // namespace naru::nn
