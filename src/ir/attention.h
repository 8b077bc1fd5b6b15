// The attention instruction (see ir/instruction.h).
#pragma once

#include <array>
#include <cstdint>

#include "ir/operand.h"
#include "naru/dims.h"

namespace naru::ir {

// out[t] = sum over s of w[t, s] v[s], where w[t] = softmax(scale * q[t] . k[s] + bias[t, s]); with `causal`, over s <= t only. Each image and
// head of q is independent. If k and v have fewer heads (key_heads), each of their heads serves heads / key_heads neighbouring heads of q.
//   Forward    writes out and stats[t], the logarithm of the softmax's denominator
//   Backward   reads out, stats and dout (the gradient of out); writes the gradients of q, k and v. The cpu leaves out those without an address
// Used only where the device supports it (runtime::Backend::takes); elsewhere attention is products and a softmax (ops/nn/attention.h).
struct Attention {
  enum class Use : uint8_t { Forward, Backward };
  using Sizes = std::array<int64_t, 4>;
  struct Array {
    void* data = nullptr;
    Sizes strides{};  // image, head, position, channel
  };
  Use use = Use::Forward;
  DType dtype = DType::F16, bias_type = DType::F16;  // stats: F32
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  double scale = 1;
  bool causal = false, biased = false;
  Array q, k, v, out, stats, bias;  // bias: image, head, query, key; strides of 0 repeat
  Array dout, dq, dk, dv;

  Sizes sizes_of_q() const { return {batch, heads, queries, width}; }
  Sizes sizes_of_k() const { return {batch, key_heads, keys, width}; }
  Sizes sizes_of_v() const { return {batch, key_heads, keys, value_width}; }
  Sizes sizes_of_out() const { return {batch, heads, queries, value_width}; }
  Sizes sizes_of_stats() const { return {batch, heads, queries, 1}; }
  Sizes sizes_of_bias() const { return {batch, heads, queries, keys}; }

  static constexpr bool kHostOnly = true;
  static constexpr const char* kFamily = "product";
  static constexpr const char* kNames[] = {"attention", "attention_backward"};  // in the order of Use
  const char* name() const { return kNames[static_cast<int>(use)]; }
  template <class F>
  void each_operand(F&& f) {
    const auto array = [&](Array& a, const char* what, bool written, DType type, const Sizes& sizes) {
      if (a.data) f(a.data, OperandUse{what, written, type, sizes, a.strides});
    };
    const bool forward = use == Use::Forward;
    array(q, "query of attention", false, dtype, sizes_of_q()), array(k, "key of attention", false, dtype, sizes_of_k());
    array(v, "value of attention", false, dtype, sizes_of_v()), array(out, "result of attention", forward, dtype, sizes_of_out());
    array(stats, "statistics of attention", forward, DType::F32, sizes_of_stats());
    array(bias, "bias of attention", false, bias_type, sizes_of_bias());
    array(dout, "gradient of attention", false, dtype, sizes_of_out()), array(dq, "gradient of a query", true, dtype, sizes_of_q());
    array(dk, "gradient of a key", true, dtype, sizes_of_k()), array(dv, "gradient of a value", true, dtype, sizes_of_v());
  }
};

}  // namespace naru::ir
