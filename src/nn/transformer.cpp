// The Transformer and its layers.
#include <cmath>
#include <limits>

#include "naru/autograd.h"
#include "naru/nn/transformer.h"

namespace naru::nn {
namespace {

// True if the mask is causal; `said` overrides the check.
bool is_causal(const Tensor& mask, std::optional<bool> said, int64_t size) {
  if (said) return *said;
  if (!mask.defined() || !(mask.sizes() == Dims{size, size}) || !is_floating(mask.dtype())) return false;
  return equal(mask.detach(), Transformer::generate_square_subsequent_mask(size, Options(mask.dtype(), mask.device())));
}

Tensor attend(MultiheadAttention& layer, const Tensor& query, const Tensor& memory, const Tensor& mask, const Tensor& padding,
              bool causal) {
  AttentionCall call{padding, false, mask};
  call.is_causal = causal;
  return layer(query, memory, memory, call).first;
}

Tensor activated(const TransformerSettings& s, const Tensor& x) { return s.activation ? s.activation(x) : relu(x); }

AttentionSettings attention_of(const TransformerSettings& s) {
  return {.dropout = s.dropout, .bias = s.bias, .batch_first = s.batch_first};
}

LayerNorm norm_of(int64_t d_model, const TransformerSettings& s, const Options& options) {
  return LayerNorm(Dims{d_model}, s.layer_norm_eps, true, s.bias, options);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerSettings& s, const Options& options)
    : d_model_(d_model), nhead_(nhead), settings_(s) {
  self_attn_ = register_module("self_attn", MultiheadAttention(d_model, nhead, attention_of(s), options));
  linear1_ = register_module("linear1", Linear(d_model, s.dim_feedforward, s.bias, options));
  dropout_ = register_module("dropout", Dropout(s.dropout));
  linear2_ = register_module("linear2", Linear(s.dim_feedforward, d_model, s.bias, options));
  norm1_ = register_module("norm1", norm_of(d_model, s, options));
  norm2_ = register_module("norm2", norm_of(d_model, s, options));
  dropout1_ = register_module("dropout1", Dropout(s.dropout));
  dropout2_ = register_module("dropout2", Dropout(s.dropout));
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderCall& call) {
  const bool causal = call.is_causal.value_or(false);
  const auto attention = [&](const Tensor& x) { return (*dropout1_)(attend(*self_attn_, x, x, call.mask, call.key_padding_mask, causal)); };
  const auto feed = [&](const Tensor& x) { return (*dropout2_)((*linear2_)((*dropout_)(activated(settings_, (*linear1_)(x))))); };
  Tensor x = src;
  if (settings_.norm_first) {
    x = x + attention((*norm1_)(x));
    return x + feed((*norm2_)(x));
  }
  x = (*norm1_)(x + attention(x));
  return (*norm2_)(x + feed(x));
}
std::shared_ptr<Module> TransformerEncoderLayer::remake() const {
  return std::make_shared<TransformerEncoderLayer>(d_model_, nhead_, settings_);
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerSettings& s, const Options& options)
    : d_model_(d_model), nhead_(nhead), settings_(s) {
  self_attn_ = register_module("self_attn", MultiheadAttention(d_model, nhead, attention_of(s), options));
  multihead_attn_ = register_module("multihead_attn", MultiheadAttention(d_model, nhead, attention_of(s), options));
  linear1_ = register_module("linear1", Linear(d_model, s.dim_feedforward, s.bias, options));
  dropout_ = register_module("dropout", Dropout(s.dropout));
  linear2_ = register_module("linear2", Linear(s.dim_feedforward, d_model, s.bias, options));
  norm1_ = register_module("norm1", norm_of(d_model, s, options));
  norm2_ = register_module("norm2", norm_of(d_model, s, options));
  norm3_ = register_module("norm3", norm_of(d_model, s, options));
  dropout1_ = register_module("dropout1", Dropout(s.dropout));
  dropout2_ = register_module("dropout2", Dropout(s.dropout));
  dropout3_ = register_module("dropout3", Dropout(s.dropout));
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, const DecoderCall& call) {
  const bool causal = call.tgt_is_causal.value_or(false);
  const auto own = [&](const Tensor& x) {
    return (*dropout1_)(attend(*self_attn_, x, x, call.tgt_mask, call.tgt_key_padding_mask, causal));
  };
  const auto other = [&](const Tensor& x) {
    return (*dropout2_)(attend(*multihead_attn_, x, memory, call.memory_mask, call.memory_key_padding_mask, call.memory_is_causal));
  };
  const auto feed = [&](const Tensor& x) { return (*dropout3_)((*linear2_)((*dropout_)(activated(settings_, (*linear1_)(x))))); };
  Tensor x = tgt;
  if (settings_.norm_first) {
    x = x + own((*norm1_)(x));
    x = x + other((*norm2_)(x));
    return x + feed((*norm3_)(x));
  }
  x = (*norm1_)(x + own(x));
  x = (*norm2_)(x + other(x));
  return (*norm3_)(x + feed(x));
}
std::shared_ptr<Module> TransformerDecoderLayer::remake() const {
  return std::make_shared<TransformerDecoderLayer>(d_model_, nhead_, settings_);
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, std::shared_ptr<Module> norm)
    : norm_(std::move(norm)) {
  layers_ = register_module("layers", ModuleList());
  for (int64_t i = 0; i < num_layers; ++i) layers_->push_back(layer.clone());
  if (norm_) register_module("norm", norm_);
}
Tensor TransformerEncoder::forward(const Tensor& src, const EncoderCall& call) {
  EncoderCall each = call;
  if (layers_->size()) each.is_causal = is_causal(call.mask, call.is_causal, call.mask.defined() ? call.mask.size(-1) : 0);
  Tensor x = src;
  for (size_t i = 0; i < layers_->size(); ++i) x = (*layers_)[i].as<TransformerEncoderLayer>()->forward(x, each);
  return norm_ ? (*norm_)(x) : x;
}
std::shared_ptr<Module> TransformerEncoder::remake() const {
  const auto* first = layers_->size() ? (*layers_)[0].as<TransformerEncoderLayer>() : nullptr;
  if (!first) throw NotImplementedError("clone(): a TransformerEncoder without layers can't be cloned");
  return std::make_shared<TransformerEncoder>(*first, static_cast<int64_t>(layers_->size()), norm_ ? norm_->clone() : nullptr);
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, std::shared_ptr<Module> norm)
    : norm_(std::move(norm)) {
  layers_ = register_module("layers", ModuleList());
  for (int64_t i = 0; i < num_layers; ++i) layers_->push_back(layer.clone());
  if (norm_) register_module("norm", norm_);
}
Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const DecoderCall& call) {
  DecoderCall each = call;
  each.tgt_is_causal = is_causal(call.tgt_mask, call.tgt_is_causal, call.tgt_mask.defined() ? call.tgt_mask.size(-1) : 0);
  Tensor x = tgt;
  for (size_t i = 0; i < layers_->size(); ++i) x = (*layers_)[i].as<TransformerDecoderLayer>()->forward(x, memory, each);
  return norm_ ? (*norm_)(x) : x;
}
std::shared_ptr<Module> TransformerDecoder::remake() const {
  const auto* first = layers_->size() ? (*layers_)[0].as<TransformerDecoderLayer>() : nullptr;
  if (!first) throw NotImplementedError("clone(): a TransformerDecoder without layers can't be cloned");
  return std::make_shared<TransformerDecoder>(*first, static_cast<int64_t>(layers_->size()), norm_ ? norm_->clone() : nullptr);
}

Transformer::Transformer(int64_t d_model, int64_t nhead, int64_t encoder_layers, int64_t decoder_layers, const TransformerSettings& s,
                         const Options& options)
    : d_model_(d_model), nhead_(nhead), encoder_layers_(encoder_layers), decoder_layers_(decoder_layers), settings_(s) {
  const TransformerEncoderLayer encoder(d_model, nhead, s, options);
  const auto norm = [&] { return std::make_shared<LayerNorm>(norm_of(d_model, s, options)); };
  encoder_ = register_module("encoder", std::make_shared<TransformerEncoder>(encoder, encoder_layers, norm()));
  const TransformerDecoderLayer decoder(d_model, nhead, s, options);
  decoder_ = register_module("decoder", std::make_shared<TransformerDecoder>(decoder, decoder_layers, norm()));
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}
Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const EncoderCall& source, const DecoderCall& target) {
  const bool batched = src.dim() == 3;
  const int64_t n = settings_.batch_first ? 0 : 1;
  if (batched && tgt.dim() == 3 && src.size(n) != tgt.size(n)) throw RuntimeError("the batch number of src and tgt must be equal");
  if (src.size(-1) != d_model_ || tgt.size(-1) != d_model_)
    throw RuntimeError("the feature number of src and tgt must be equal to d_model");
  const Tensor memory = encoder_->forward(src, source);
  return (*decoder_)(tgt, memory, target);
}
Tensor Transformer::generate_square_subsequent_mask(int64_t size, const Options& options) {
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}
std::shared_ptr<Module> Transformer::remake() const {
  return std::make_shared<Transformer>(d_model_, nhead_, encoder_layers_, decoder_layers_, settings_);
}

}  // namespace naru::nn
