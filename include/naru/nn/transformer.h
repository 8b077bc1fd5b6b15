// Multi-head attention and Transformer layers (Vaswani et al., 2017). State-dict names and the order in which parameters are drawn match
// PyTorch.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/nn.h"
#include "naru/standard.h"

namespace naru::nn {
namespace functional {

struct MultiHeadAttentionOptions {
  int64_t embed_dim = 0, num_heads = 1;
  Tensor in_proj_weight = {}, in_proj_bias = {};  // (3 E, E), (3 E)
  Tensor bias_k = {}, bias_v = {};                // (1, 1, E): an additional key and value for all
  bool add_zero_attn = false;                     // adds a key and value of zeros
  double dropout_p = 0;
  Tensor out_proj_weight = {}, out_proj_bias = {};
  bool training = true;
  Tensor key_padding_mask = {};  // (N, S) or (S): bool (true: ignore), or added to the scores
  bool need_weights = true;
  Tensor attn_mask = {};                                              // (L, S) or (N · heads, L, S), likewise
  bool use_separate_proj_weight = false;                              // use these instead of in_proj_weight:
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};  // (E, E), (E, Ek), (E, Ev)
  Tensor static_k = {}, static_v = {};                                // (N · heads, S, E / heads), instead of projected key and value
  bool average_attn_weights = true;
  bool is_causal = false;  // attn_mask, which is required, is the causal mask
};
// Multi-head attention. query (L, N, E) or (L, E), key (S, N, Ek) or (S, Ek), value (S, N, Ev) or (S, Ev). Returns (L, N, E) or (L, E),
// and, if need_weights, the attention weights: averaged over heads, (N, L, S) or (L, S), or per head, (N, heads, L, S) or (heads, L, S).
// Throws ValueError for shapes that do not fit, RuntimeError for masks that do not.
std::pair<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                       const MultiHeadAttentionOptions& options);

}  // namespace functional

struct AttentionSettings {
  double dropout = 0;
  bool bias = true, add_bias_kv = false, add_zero_attn = false;
  int64_t kdim = 0, vdim = 0;  // 0: embed_dim
  bool batch_first = false;
};
// The masks of one call, and which results to return.
struct AttentionCall {
  Tensor key_padding_mask = {};
  bool need_weights = true;
  Tensor attn_mask = {};
  bool average_attn_weights = true, is_causal = false;
};

// Parameters: in_proj_weight (3 E, E), or q_proj_weight, k_proj_weight and v_proj_weight if kdim or vdim differs from E; in_proj_bias;
// out_proj; bias_k and bias_v. Throws ValueError if num_heads does not divide embed_dim.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const AttentionSettings& settings = {}, const Options& options = {});
  using Module::forward;
  // functional::multi_head_attention_forward; with batch_first, tensors are (N, L, E) etc.
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionCall& call = {});
  std::pair<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionCall& call = {}) {
    return forward(query, key, value, call);
  }
  void reset_parameters();
  std::string name() const override { return "MultiheadAttention"; }
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  std::shared_ptr<Linear> out_proj;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t embed_dim_, num_heads_;
  AttentionSettings settings_;
};

struct TransformerSettings {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::function<Tensor(const Tensor&)> activation = {};  // default: relu
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
};
// The masks of an encoder's call; of a decoder's call, for the target and for the memory.
struct EncoderCall {
  Tensor mask = {}, key_padding_mask = {};
  std::optional<bool> is_causal = {};  // unset: detected from the mask
};
struct DecoderCall {
  Tensor tgt_mask = {}, memory_mask = {}, tgt_key_padding_mask = {}, memory_key_padding_mask = {};
  std::optional<bool> tgt_is_causal = {};
  bool memory_is_causal = false;
};

// Self-attention, then two linear layers, each with dropout, a residual connection, and a layer norm (after it; with norm_first before it).
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerSettings& settings = {}, const Options& options = {});
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderCall& call);
  std::string name() const override { return "TransformerEncoderLayer"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t d_model_, nhead_;
  TransformerSettings settings_;
  std::shared_ptr<MultiheadAttention> self_attn_;
  std::shared_ptr<Linear> linear1_, linear2_;
  std::shared_ptr<Dropout> dropout_, dropout1_, dropout2_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
};

// The same with attention to `memory`, an encoder's output, between the two.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerSettings& settings = {}, const Options& options = {});
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderCall& call = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderCall& call = {}) { return forward(tgt, memory, call); }
  std::string name() const override { return "TransformerDecoderLayer"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t d_model_, nhead_;
  TransformerSettings settings_;
  std::shared_ptr<MultiheadAttention> self_attn_, multihead_attn_;
  std::shared_ptr<Linear> linear1_, linear2_;
  std::shared_ptr<Dropout> dropout_, dropout1_, dropout2_, dropout3_;
  std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
};

// num_layers clones of a layer, followed by a norm if one is given.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers, std::shared_ptr<Module> norm = {});
  Tensor forward(const Tensor& src) override { return forward(src, {}); }
  Tensor forward(const Tensor& src, const EncoderCall& call);
  std::string name() const override { return "TransformerEncoder"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  std::shared_ptr<ModuleList> layers_;
  std::shared_ptr<Module> norm_;
};
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers, std::shared_ptr<Module> norm = {});
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderCall& call = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderCall& call = {}) { return forward(tgt, memory, call); }
  std::string name() const override { return "TransformerDecoder"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  std::shared_ptr<ModuleList> layers_;
  std::shared_ptr<Module> norm_;
};

// An encoder over the source and a decoder over the target. Weights of more than one dimension are initialized by xavier_uniform_.
class Transformer : public Module {
 public:
  Transformer(int64_t d_model = 512, int64_t nhead = 8, int64_t num_encoder_layers = 6, int64_t num_decoder_layers = 6,
              const TransformerSettings& settings = {}, const Options& options = {});
  using Module::forward;
  // src (S, N, E), tgt (T, N, E), or (S, E) and (T, E); with batch_first (N, S, E), (N, T, E). Throws RuntimeError for other shapes.
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderCall& source = {}, const DecoderCall& target = {});
  Tensor operator()(const Tensor& src, const Tensor& tgt, const EncoderCall& source = {}, const DecoderCall& target = {}) {
    return forward(src, tgt, source, target);
  }
  // (size, size): 0 up to the diagonal, -inf above it.
  static Tensor generate_square_subsequent_mask(int64_t size, const Options& options = {});
  std::string name() const override { return "Transformer"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t d_model_, nhead_, encoder_layers_, decoder_layers_;
  TransformerSettings settings_;
  std::shared_ptr<TransformerEncoder> encoder_;
  std::shared_ptr<TransformerDecoder> decoder_;
};

}  // namespace naru::nn
