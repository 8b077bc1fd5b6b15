// Attention as functions, and multi-head attention as a module.
#include <cmath>
#include <limits>

#include "naru/autograd.h"
#include "naru/nn/transformer.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/nn/attention.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::nn {
namespace functional {
namespace {

using HeadOptions = MultiHeadAttentionOptions;

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool is_causal) {
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    throw RuntimeError(
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and value.dim: {} instead.",
        q.dim(), k.dim(), v.dim());
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype())
    throw RuntimeError(
        "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
        ops::c_name(q.dtype()), ops::c_name(k.dtype()), ops::c_name(v.dtype()));
  if (!is_floating(q.dtype()))
    throw RuntimeError("expected scalar type Float but found {} (scaled_dot_product_attention)", ops::torch_name(q.dtype()));
  if (!mask.defined()) return;
  if (is_causal) throw RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  if (mask.dtype() != DType::Bool && mask.dtype() != DType::F32 && mask.dtype() != q.dtype())
    throw RuntimeError(
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead.",
        ops::c_name(mask.dtype()), ops::c_name(q.dtype()));
}

// Checks that repeating the heads of t (dimension -3) can give as many as query has.
void check_heads(const Tensor& t, const Tensor& query) {
  const int64_t all = query.size(-3), own = t.size(-3);
  if (own == 0 || all % own)
    throw RuntimeError("Number of heads in key and value must divide the number of heads in query (got {} and {})", own, all);
}

// True if there is a batch dimension. Throws ValueError for inconsistent ranks.
bool is_batched(const Tensor& query, const Tensor& key, const Tensor& value, const HeadOptions& o) {
  if (query.dim() != 2 && query.dim() != 3)
    throw ValueError("query should be unbatched 2D or batched 3D tensor but received {}-D query tensor", query.dim());
  const bool batched = query.dim() == 3;
  const char* kind = batched ? "batched (3-D)" : "unbatched (2-D)";
  if (key.dim() != query.dim() || value.dim() != query.dim())
    throw ValueError("For {} `query`, expected `key` and `value` to be {}-D but found {}-D and {}-D tensors respectively", kind,
                     query.dim(), key.dim(), value.dim());
  if (o.key_padding_mask.defined() && o.key_padding_mask.dim() != query.dim() - 1)
    throw ValueError("For {} `query`, expected `key_padding_mask` to be `None` or {}-D but found {}-D tensor instead", kind,
                     query.dim() - 1, o.key_padding_mask.dim());
  if (!o.attn_mask.defined()) return batched;
  if (o.attn_mask.dim() != 2 && o.attn_mask.dim() != 3)
    throw ValueError("For {} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {}-D tensor instead", kind,
                     o.attn_mask.dim());
  const Dims wanted{o.num_heads, query.size(0), key.size(0)};
  if (!batched && o.attn_mask.dim() == 3 && !(o.attn_mask.sizes() == wanted))
    throw ValueError("Expected `attn_mask` shape to be ({}, {}, {}) but got torch.Size({})", wanted[0], wanted[1], wanted[2],
                     o.attn_mask.sizes().str());
  return batched;
}

// Converts a mask to one that is added to the scores.
Tensor additive(const Tensor& mask, const char* name, DType type) {
  if (!mask.defined() || is_floating(mask.dtype())) return mask;
  if (mask.dtype() != DType::Bool) throw ValueError("only bool and floating types of {} are supported", name);
  return masked_fill(zeros(mask.sizes(), naru::Options(type, mask.device())), mask, -std::numeric_limits<double>::infinity());
}

Tensor third(const Tensor& t, int64_t i) { return t.defined() ? t.narrow(0, i * (t.size(0) / 3), t.size(0) / 3) : t; }

struct Projected {
  Tensor q, k, v;
};
Projected project(const Tensor& query, const Tensor& key, const Tensor& value, const HeadOptions& o) {
  const Tensor& b = o.in_proj_bias;
  if (o.use_separate_proj_weight) {
    for (const auto& [weight, name] : {std::pair(&o.q_proj_weight, "q_proj_weight"), std::pair(&o.k_proj_weight, "k_proj_weight"),
                                       std::pair(&o.v_proj_weight, "v_proj_weight")})
      if (!weight->defined()) throw ValueError("use_separate_proj_weight is True but {} is None", name);
    const Tensor q = linear(query, o.q_proj_weight, third(b, 0)), k = linear(key, o.k_proj_weight, third(b, 1));
    return {q, k, linear(value, o.v_proj_weight, third(b, 2))};
  }
  const Tensor& w = o.in_proj_weight;
  if (!w.defined()) throw ValueError("use_separate_proj_weight is False but in_proj_weight is None");
  const int64_t e = w.size(0) / 3;
  if (query.is(key) && key.is(value)) {  // one product for all three
    const Tensor all = linear(query, w, b);
    return {all.narrow(-1, 0, e), all.narrow(-1, e, e), all.narrow(-1, 2 * e, e)};
  }
  const Tensor q = linear(query, third(w, 0), third(b, 0));
  if (key.is(value)) {
    const Tensor both = linear(key, w.narrow(0, e, 2 * e), b.defined() ? b.narrow(0, e, 2 * e) : b);
    return {q, both.narrow(-1, 0, e), both.narrow(-1, e, e)};
  }
  const Tensor k = linear(key, third(w, 1), third(b, 1));
  return {q, k, linear(value, third(w, 2), third(b, 2))};
}

void check_widths(const Tensor& query, const Tensor& key, const Tensor& value, const HeadOptions& o) {
  const auto text = [](const Tensor& t, size_t n) {
    return "torch.Size(" + Dims(std::span<const int64_t>(t.sizes()).first(n)).str() + ")";
  };
  if (query.size(-1) != o.embed_dim) throw ValueError("was expecting embedding dimension of {}, but got {}", o.embed_dim, query.size(-1));
  if (o.num_heads <= 0 || o.embed_dim % o.num_heads)
    throw ValueError("embed_dim {} not divisible by num_heads {}", o.embed_dim, o.num_heads);
  if (o.use_separate_proj_weight) {
    if (key.size(0) != value.size(0) || key.size(1) != value.size(1))
      throw ValueError("key's sequence and batch dims {} do not match value's {}", text(key, 2), text(value, 2));
  } else if (!(key.sizes() == value.sizes())) {
    throw ValueError("key shape {} does not match value shape {}", text(key, 3), text(value, 3));
  }
}

// Checks attn_mask and makes it (1 or N · heads, L, S).
Tensor spread(const Tensor& mask, int64_t rows, int64_t columns, int64_t all) {
  if (!mask.defined()) return mask;
  const Dims flat{rows, columns}, deep{all, rows, columns};
  const auto wrong = [&](const char* rank, const std::string& wanted) {
    return RuntimeError("The shape of the {} attn_mask is torch.Size({}), but should be ({}).", rank, mask.sizes().str(), wanted);
  };
  const auto inside = [](const Dims& d) { return d.str().substr(1, d.str().size() - 2); };
  if (mask.dim() == 2 && !(mask.sizes() == flat)) throw wrong("2D", inside(flat));
  if (mask.dim() == 3 && !(mask.sizes() == deep)) throw wrong("3D", inside(deep));
  return mask.dim() == 2 ? mask.unsqueeze(0) : mask;
}

// Appends a column that every position attends to.
Tensor one_more(const Tensor& mask) { return mask.defined() ? pad(mask, Dims{0, 1}) : mask; }

// (T, N, E) as (N · heads, T, E / heads).
Tensor heads_of(const Tensor& t, int64_t all, const Tensor& fixed, const char* name, int64_t width) {
  if (!fixed.defined()) return t.reshape({t.size(0), all, width}).transpose(0, 1);
  if (fixed.size(0) != all) throw ValueError("expecting {}.size(0) of {}, but got {}", name, all, fixed.size(0));
  if (fixed.size(2) != width) throw ValueError("expecting {}.size(2) of {}, but got {}", name, width, fixed.size(2));
  return fixed;
}

// Queries, keys and values of all heads, with the additional keys and values (bias_k, bias_v, add_zero_attn), and masks widened to match.
struct Heads {
  Tensor q, k, v, mask, padding;
};
Heads all_heads(Projected p, Tensor mask, Tensor padding, int64_t batch, const HeadOptions& o) {
  const int64_t all = batch * o.num_heads, width = o.embed_dim / o.num_heads;
  if (o.bias_k.defined() != o.bias_v.defined())
    throw ValueError(o.bias_k.defined() ? "bias_k is set but bias_v is None" : "bias_v is set but bias_k is None");
  if (o.bias_k.defined()) {
    if (o.static_k.defined()) throw ValueError("bias cannot be added to static key.");
    if (o.static_v.defined()) throw ValueError("bias cannot be added to static value.");
    p.k = cat({p.k, o.bias_k.expand({1, batch, o.embed_dim})}), p.v = cat({p.v, o.bias_v.expand({1, batch, o.embed_dim})});
    mask = one_more(mask), padding = one_more(padding);
  }
  Heads h{heads_of(p.q, all, {}, "", width), heads_of(p.k, all, o.static_k, "static_k", width),
          heads_of(p.v, all, o.static_v, "static_v", width), mask, padding};
  if (!o.add_zero_attn) return h;
  const Tensor none = zeros({all, 1, width}, naru::Options(h.k.dtype(), h.k.device()));
  h.k = cat({h.k, none}, 1), h.v = cat({h.v, none}, 1);
  h.mask = one_more(h.mask), h.padding = one_more(h.padding);
  return h;
}

// Combines the two masks into one.
Tensor merged(const Heads& h, int64_t batch, int64_t heads) {
  if (!h.padding.defined()) return h.mask;
  const int64_t keys = h.k.size(1);
  if (h.padding.size(0) != batch) throw ValueError("Expected key_padded_mask.shape[0] to be {}, but got {}", batch, h.padding.size(0));
  if (h.padding.size(1) != keys) throw ValueError("Expected key_padded_mask.shape[1] to be {}, but got {}", keys, h.padding.size(1));
  const Tensor padding = h.padding.view({batch, 1, 1, keys}).expand({batch, heads, 1, keys}).reshape({batch * heads, 1, keys});
  return h.mask.defined() ? h.mask + padding : padding;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, double dropout_p,
                                    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  if (auto y = ops::wrapped("scaled_dot_product_attention", scaled_dot_product_attention, query, key, value, attn_mask, dropout_p,
                            is_causal, scale, enable_gqa))
    return *std::move(y);
  for (const auto& [t, role] : {std::pair(&query, "query"), std::pair(&key, "key"), std::pair(&value, "value")})
    ops::require_defined(*t, "scaled_dot_product_attention", role);
  check_attention(query, key, value, attn_mask, is_causal);
  if (!(dropout_p >= 0 && dropout_p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", dropout_p);
  if (enable_gqa) check_heads(key, query), check_heads(value, query);
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  return ops::attention(query, key, value, attn_mask, {factor, is_causal, dropout_p, 0, enable_gqa});
}

std::pair<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                       const HeadOptions& given) {
  HeadOptions o = given;
  const bool batched = is_batched(query, key, value, o);
  if (!batched) {  // add a batch dimension of 1
    const Tensor q = query.unsqueeze(1), k = key.is(query) ? q : key.unsqueeze(1), v = value.is(key) ? k : value.unsqueeze(1);
    if (o.key_padding_mask.defined()) o.key_padding_mask = o.key_padding_mask.unsqueeze(0);
    auto [out, weights] = multi_head_attention_forward(q, k, v, o);
    return {out.squeeze(1), weights.defined() ? weights.squeeze(0) : weights};
  }
  if (o.key_padding_mask.defined() && o.attn_mask.defined() && o.key_padding_mask.dtype() != o.attn_mask.dtype())
    warn("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.");
  if (o.is_causal && !o.attn_mask.defined())
    throw RuntimeError(
        "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to "
        "create this mask.");
  const Tensor padding = additive(o.key_padding_mask, "key_padding_mask", query.dtype());
  const bool causal = o.is_causal && !padding.defined() && !o.need_weights;
  const Tensor mask = causal ? Tensor() : additive(o.attn_mask, "attn_mask", query.dtype());
  check_widths(query, key, value, o);
  const int64_t rows = query.size(0), batch = query.size(1), heads = o.num_heads, width = o.embed_dim / heads;
  Projected p = project(query, key, value, o);
  const Heads h = all_heads(std::move(p), spread(mask, rows, key.size(0), batch * heads), padding, batch, o);
  const Tensor both = merged(h, batch, heads);
  const int64_t keys = h.k.size(1);
  const double dropout_p = o.training ? o.dropout_p : 0;
  const auto joined = [&](const Tensor& t) {  // (N · heads, L, E / heads) to (L, N, E), through the output projection
    return linear(t.transpose(0, 1).reshape({rows, batch, o.embed_dim}), o.out_proj_weight, o.out_proj_bias);
  };
  if (!o.need_weights) {
    const auto apart = [&](const Tensor& t) { return t.reshape({batch, heads, t.size(1), t.size(2)}); };
    const Tensor seen = !both.defined() ? both : both.size(0) == 1 ? both.unsqueeze(0) : apart(both);
    const Tensor out = scaled_dot_product_attention(apart(h.q), apart(h.k), apart(h.v), seen, dropout_p, causal);
    return {joined(out.reshape({batch * heads, rows, width})), Tensor()};
  }
  Tensor weights = matmul(h.q * std::sqrt(1.0 / static_cast<double>(width)), h.k.transpose(-2, -1));
  if (both.defined()) weights = weights + both.to(weights.dtype());
  weights = softmax(weights, -1);
  if (dropout_p > 0) weights = dropout(weights, dropout_p);
  const Tensor out = joined(matmul(weights, h.v));
  weights = weights.view({batch, heads, rows, keys});
  return {out, o.average_attn_weights ? weights.mean({1}) : weights};
}

}  // namespace functional

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const AttentionSettings& settings, const Options& options)
    : embed_dim_(embed_dim), num_heads_(num_heads), settings_(settings) {
  if (embed_dim <= 0 || num_heads <= 0)
    throw ValueError("embed_dim and num_heads must be greater than 0, got embed_dim={} and num_heads={} instead", embed_dim, num_heads);
  if (embed_dim % num_heads) throw ValueError("embed_dim must be divisible by num_heads");
  const int64_t kdim = settings.kdim ? settings.kdim : embed_dim, vdim = settings.vdim ? settings.vdim : embed_dim;
  const bool same = kdim == embed_dim && vdim == embed_dim;
  const auto matrix = [&](int64_t rows, int64_t columns, bool there) { return there ? empty({rows, columns}, options) : Tensor(); };
  if (same) in_proj_weight = register_parameter("in_proj_weight", matrix(3 * embed_dim, embed_dim, true));
  q_proj_weight = register_parameter("q_proj_weight", matrix(embed_dim, embed_dim, !same));
  k_proj_weight = register_parameter("k_proj_weight", matrix(embed_dim, kdim, !same));
  v_proj_weight = register_parameter("v_proj_weight", matrix(embed_dim, vdim, !same));
  if (!same) in_proj_weight = register_parameter("in_proj_weight", Tensor());
  in_proj_bias = register_parameter("in_proj_bias", settings.bias ? empty({3 * embed_dim}, options) : Tensor());
  out_proj = register_module("out_proj", Linear(embed_dim, embed_dim, settings.bias, options));
  bias_k = register_parameter("bias_k", settings.add_bias_kv ? empty({1, 1, embed_dim}, options) : Tensor());
  bias_v = register_parameter("bias_v", settings.add_bias_kv ? empty({1, 1, embed_dim}, options) : Tensor());
  reset_parameters();
}

void MultiheadAttention::reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (in_proj_bias.defined()) init::zeros_(in_proj_bias), init::zeros_(out_proj->bias);
  if (bias_k.defined()) init::xavier_normal_(bias_k), init::xavier_normal_(bias_v);
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const AttentionCall& call) {
  const bool turn = settings_.batch_first && query.dim() == 3;
  const auto turned = [&](const Tensor& t) { return turn && t.dim() == 3 ? t.transpose(0, 1) : t; };
  const Tensor q = turned(query), k = key.is(query) ? q : turned(key), v = value.is(key) ? k : turned(value);
  functional::MultiHeadAttentionOptions o{.embed_dim = embed_dim_, .num_heads = num_heads_};
  o.in_proj_weight = in_proj_weight, o.in_proj_bias = in_proj_bias, o.bias_k = bias_k, o.bias_v = bias_v;
  o.add_zero_attn = settings_.add_zero_attn, o.dropout_p = settings_.dropout, o.training = is_training();
  o.out_proj_weight = out_proj->weight, o.out_proj_bias = out_proj->bias;
  o.use_separate_proj_weight = !in_proj_weight.defined();
  o.q_proj_weight = q_proj_weight, o.k_proj_weight = k_proj_weight, o.v_proj_weight = v_proj_weight;
  o.key_padding_mask = call.key_padding_mask, o.need_weights = call.need_weights, o.attn_mask = call.attn_mask;
  o.average_attn_weights = call.average_attn_weights, o.is_causal = call.is_causal;
  auto [out, weights] = functional::multi_head_attention_forward(q, k, v, o);
  return {turned(out), weights};
}

std::shared_ptr<Module> MultiheadAttention::remake() const {
  return std::make_shared<MultiheadAttention>(embed_dim_, num_heads_, settings_);
}

}  // namespace naru::nn
