// The instruction of attention (see ir/instruction.h).
#pragma once

#include <array>
#include <cstdint>

#include "ir/operand.h"
#include "naru/dims.h"

namespace naru::ir {

// out[t] = the sum over s of w[t, s] v[s], with w[t] the softmax of scale * q[t] . k[s] + bias[t, s]; `causal`: over s <= t only. For each image and head
// of q by itself; heads of k and v that are fewer serve heads / key_heads neighbours of q each.
//   Forward    writes out and stats[t], the logarithm of the sum that the softmax divides by
//   Backward   reads both, and dout, out's gradient; writes those of q, k and v
// Asked for only where a device takes it (runtime::Backend::takes): elsewhere it is products and a softmax (ops/attention.h).
struct Attention {
  enum class Use : uint8_t { Forward, Backward };
  using Sizes = std::array<int64_t, 4>;
  struct Array {
    void* data = nullptr;
    Sizes strides{};  // image, head, position, number
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
