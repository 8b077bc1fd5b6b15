// Attention.
#include "ops/nn/attention.h"
#include "naru/nn/transformer.h"
#include "object/function.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

namespace F = nn::functional;

// The tensors of the options, in Python's order; undefined for None.
std::vector<Tensor> tensors_of(PyObject* given) {
  if (!PyTuple_Check(given)) throw TypeError("_multi_head_attention(): tensors must be a tuple");
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
    PyObject* item = PyTuple_GET_ITEM(given, i);
    if (item != Py_None && !is_tensor(item))
      throw TypeError("multi_head_attention_forward(): masks, weights and biases must be Tensor or None, not {}", Py_TYPE(item)->tp_name);
    list.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return list;
}

PyObject* run(const Tensor& query, const Tensor& key, const Tensor& value, PyObject* given, F::MultiHeadAttentionOptions o) {
  const std::vector<Tensor> list = tensors_of(given);
  Tensor* const places[] = {&o.in_proj_weight, &o.in_proj_bias,     &o.bias_k,    &o.bias_v,        &o.out_proj_weight,
                            &o.out_proj_bias,  &o.key_padding_mask, &o.attn_mask, &o.q_proj_weight, &o.k_proj_weight,
                            &o.v_proj_weight,  &o.static_k,         &o.static_v};
  if (list.size() != std::size(places))
    throw TypeError("_multi_head_attention(): wanted {} tensors, got {}", std::size(places), list.size());
  for (size_t i = 0; i < list.size(); ++i) *places[i] = list[i];
  std::pair<Tensor, Tensor> result;
  {
    GilRelease scope;
    result = F::multi_head_attention_forward(query, key, value, o);
  }
  const nb::object out = nb::steal(check(wrap(result.first)));
  const nb::object weights = result.second.defined() ? nb::steal(check(wrap(result.second))) : nb::object(nb::none());
  return check(PyTuple_Pack(2, out.ptr(), weights.ptr()));
}

}  // namespace

void define_attention() {
  def(kFunction, "_scaled_dot_product_attention", "query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa",
      "softmax(query keyᵀ scale + mask) value.",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& mask, double p, bool causal, std::optional<double> scale,
         bool gqa) { return F::scaled_dot_product_attention(q, k, v, or_undefined(mask), p, causal, scale, gqa); });
  def(kFunction, "_allow_fused_attention", "mode", "Whether attention may be done as a whole by a device's library; what it was.",
      [](bool on) { return ops::allow_fused_attention(on); });
  def(kFunction, "_multi_head_attention",
      "query, key, value, tensors, embed_dim, num_heads, add_zero_attn, dropout_p, training, need_weights, separate, average, is_causal",
      "Attention of several heads: (output, weights or None).",
      [](const Tensor& q, const Tensor& k, const Tensor& v, PyObject* tensors, int64_t embed_dim, int64_t heads, bool add_zero, double p,
         bool training, bool need_weights, bool separate, bool average, bool causal) -> PyObject* {
        F::MultiHeadAttentionOptions o{.embed_dim = embed_dim, .num_heads = heads};
        o.add_zero_attn = add_zero, o.dropout_p = p, o.training = training, o.need_weights = need_weights;
        o.use_separate_proj_weight = separate, o.average_attn_weights = average, o.is_causal = causal;
        return run(q, k, v, tensors, std::move(o));
      });
}

}  // namespace naru::py
