// Describes an attention to cuDNN: which attentions it supports, and the operations in the order and form that its engines recognise and
// fuse into one kernel.
#include <algorithm>
#include <climits>

#include "backends/cuda/attention.h"

namespace naru::backends::cuda {
namespace {

using ir::Attention;
using Value = DnnGraph::Tensor;

int attention_type(DType type) noexcept {
  return type == DType::F16 ? CUDNN_DATA_HALF : type == DType::BF16 ? CUDNN_DATA_BFLOAT16 : type == DType::F32 ? CUDNN_DATA_FLOAT : -1;
}

// Sets the strides for the library. Returns false if its kernels do not support them: they load 16 contiguous bytes at a time.
bool set_strides(Sizes4& to, const Sizes4& sizes, const Attention::Array& from) noexcept {
  constexpr int64_t kLoad = 8;
  const Sizes4 dense = dense_strides(sizes);
  int64_t all = 1, reach = 1;
  for (size_t d = 0; d < 4; ++d) {
    to[d] = sizes[d] == 1 ? dense[d] : from.strides[d];
    if (sizes[d] < 1 || sizes[d] > INT_MAX || (all *= sizes[d]) > INT_MAX || to[d] < 1 || to[d] > INT_MAX) return false;
    if ((reach += (sizes[d] - 1) * to[d]) > INT_MAX) return false;
    if (d < 3 && to[d] % kLoad != 0) return false;
  }
  return to[3] == 1;
}

// Broadcast dimensions get size 1.
bool set_bias(DnnAttention& a, const Attention& op) noexcept {
  if (!op.biased) return true;
  a.bias_type = attention_type(op.bias_type);
  if (a.bias_type < 0 || (a.bias_type != a.type && a.bias_type != CUDNN_DATA_FLOAT)) return false;
  a.bias_sizes = op.sizes_of_bias();
  for (size_t d = 0; d < 3; ++d)
    if (op.bias.strides[d] == 0) a.bias_sizes[d] = 1;
  a.bias = dense_strides(a.bias_sizes);
  for (size_t d = 0; d < 4; ++d)
    if (a.bias_sizes[d] != 1 && op.bias.strides[d] != a.bias[d]) return false;
  return true;
}

Sizes4 turned(Sizes4 s) {
  std::swap(s[2], s[3]);
  return s;
}

// The common parts of forward and backward.
struct Parts {
  DnnGraph& g;
  const DnnAttention& a;
  const Sizes4 scores{a.q_sizes[0], a.q_sizes[1], a.q_sizes[2], a.k_sizes[2]}, rows{a.q_sizes[0], a.q_sizes[1], a.q_sizes[2], 1};

  Value given(DnnOperand number, const Sizes4& sizes, const Sizes4& strides) {
    return g.in_memory(static_cast<int64_t>(number), a.type, sizes, strides);
  }
  // With positions as columns (transposed).
  Value given_turned(DnnOperand number, const Sizes4& sizes, const Sizes4& strides) {
    return given(number, turned(sizes), turned(strides));
  }
  Value floats(DnnOperand number, const Sizes4& sizes) {
    return g.in_memory(static_cast<int64_t>(number), CUDNN_DATA_FLOAT, sizes, dense_strides(sizes));
  }
  Value number(DnnOperand n) { return g.of_host(static_cast<int64_t>(n)); }
  Value product(Value x, Value y) {
    const Value out = g.inner(CUDNN_DATA_FLOAT, scores);
    g.matmul(x, y, out);
    return out;
  }
  Value computed(int mode, std::initializer_list<Value> operands, const Sizes4& sizes) {
    const Value out = g.inner(CUDNN_DATA_FLOAT, sizes);
    g.pointwise(mode, operands, out);
    return out;
  }
  Value reduced(int op, Value x) {
    const Value out = g.inner(CUDNN_DATA_FLOAT, rows);
    g.reduction(op, x, out);
    return out;
  }
  Value biased(Value s) {
    if (a.bias_type < 0) return s;
    const Value bias = g.in_memory(static_cast<int64_t>(DnnOperand::Bias), a.bias_type, a.bias_sizes, a.bias);
    return computed(CUDNN_POINTWISE_ADD, {s, bias}, scores);
  }
  // Causal mask: minus infinity where the key's position is after the query's.
  Value masked(Value s) {
    if (!a.causal) return s;
    const Value row = g.inner(CUDNN_DATA_INT32, scores), column = g.inner(CUDNN_DATA_INT32, scores);
    g.pointwise(CUDNN_POINTWISE_GEN_INDEX, {s}, row, CUDNN_DATA_FLOAT, 2);
    g.pointwise(CUDNN_POINTWISE_GEN_INDEX, {s}, column, CUDNN_DATA_FLOAT, 3);
    const Value seen = g.inner(CUDNN_DATA_BOOLEAN, scores), hidden = number(DnnOperand::Hidden);
    g.pointwise(CUDNN_POINTWISE_CMP_GE, {row, column}, seen, CUDNN_DATA_BOOLEAN);
    return computed(CUDNN_POINTWISE_BINARY_SELECT, {s, hidden, seen}, scores);
  }
  // Rounds to the dtype and transposes, so that queries are columns.
  Value transposed(Value s) {
    const Value out = g.inner(a.type, turned(scores), turned(dense_strides(scores)));
    g.reshape(s, out);
    return out;
  }
  // x y, summed over the query heads that share a head of k and v.
  void product_of_group(Value x, Value y, Value into) {
    Sizes4 all = into.sizes;
    if (all[1] == a.q_sizes[1]) return g.matmul(x, y, into);
    all[1] = a.q_sizes[1];
    const Value each = g.inner(a.type, all);
    g.matmul(x, y, each);
    g.reduction(CUDNN_REDUCE_TENSOR_ADD, each, into);
  }

  void forward() {
    const Value q = given(DnnOperand::Query, a.q_sizes, a.q), k = given_turned(DnnOperand::Key, a.k_sizes, a.k);
    const Value v = given(DnnOperand::Value, a.v_sizes, a.v), out = given(DnnOperand::Result, a.out_sizes, a.out);
    const Value scale = number(DnnOperand::Scale);
    const Value s = masked(biased(computed(CUDNN_POINTWISE_MUL, {product(q, k), scale}, scores)));
    const Value most = reduced(CUDNN_REDUCE_TENSOR_MAX, s);
    const Value e = computed(CUDNN_POINTWISE_EXP, {computed(CUDNN_POINTWISE_SUB, {s, most}, scores)}, scores);
    const Value sum = reduced(CUDNN_REDUCE_TENSOR_ADD, e), log = computed(CUDNN_POINTWISE_LOG, {sum}, rows);
    g.pointwise(CUDNN_POINTWISE_ADD, {most, log}, floats(DnnOperand::Statistics, rows));
    const Value weights = g.inner(a.type, scores);
    g.pointwise(CUDNN_POINTWISE_DIV, {e, sum}, weights);
    g.matmul(weights, v, out);
  }

  void backward() {
    const Value q = given(DnnOperand::Query, a.q_sizes, a.q), k = given_turned(DnnOperand::Key, a.k_sizes, a.k);
    const Value v = given_turned(DnnOperand::Value, a.v_sizes, a.v), out = given(DnnOperand::Result, a.out_sizes, a.out);
    const Value dout = given(DnnOperand::ResultGradient, a.out_sizes, a.dout), stats = floats(DnnOperand::Statistics, rows);
    const Value scale = number(DnnOperand::Scale), sums = floats(DnnOperand::Sums, rows);
    const Value both = computed(CUDNN_POINTWISE_MUL, {dout, out}, a.out_sizes);
    g.pointwise(CUDNN_POINTWISE_MUL, {reduced(CUDNN_REDUCE_TENSOR_ADD, both), number(DnnOperand::One)}, sums);
    const Value s = biased(computed(CUDNN_POINTWISE_MUL, {product(q, k), scale}, scores));
    const Value w = computed(CUDNN_POINTWISE_EXP, {masked(computed(CUDNN_POINTWISE_SUB, {s, stats}, scores))}, scores);
    product_of_group(transposed(w), dout, given(DnnOperand::ValueGradient, a.v_sizes, a.dv));
    const Value dw = computed(CUDNN_POINTWISE_SUB, {product(dout, v), sums}, scores);
    const Value ds = computed(CUDNN_POINTWISE_MUL, {computed(CUDNN_POINTWISE_MUL, {dw, w}, scores), scale}, scores);
    product_of_group(transposed(ds), q, given(DnnOperand::KeyGradient, a.k_sizes, a.dk));
    const Value rows_of_k = g.inner(a.type, a.k_sizes, a.k);
    g.reshape(k, rows_of_k);
    const Value dq = floats(DnnOperand::QuerySums, a.q_sizes);
    g.matmul(ds, rows_of_k, dq);
    g.pointwise(CUDNN_POINTWISE_IDENTITY, {dq}, given(DnnOperand::QueryGradient, a.q_sizes, a.dq));
  }
};

}  // namespace

std::optional<DnnAttention> for_cudnn(const Attention& op, int version) noexcept {
  // Some older versions are known to be wrong (9.10.0), others need different graphs.
  constexpr int kLeast = 91002, kRaggedKeys = 91500;
  DnnAttention a;
  a.use = op.use, a.type = attention_type(op.dtype), a.causal = op.causal;
  if (version < kLeast || (a.type != CUDNN_DATA_HALF && a.type != CUDNN_DATA_BFLOAT16)) return std::nullopt;
  constexpr int64_t kWidest = 256;
  if (op.width % 8 != 0 || op.value_width % 8 != 0 || std::max(op.width, op.value_width) > kWidest) return std::nullopt;
  if (op.key_heads < 1 || op.heads % op.key_heads != 0 || op.keys < 2 || (op.causal && op.biased)) return std::nullopt;
  a.q_sizes = op.sizes_of_q(), a.k_sizes = op.sizes_of_k(), a.v_sizes = op.sizes_of_v(), a.out_sizes = op.sizes_of_out();
  if (!set_strides(a.q, a.q_sizes, op.q) || !set_strides(a.k, a.k_sizes, op.k) || !set_strides(a.v, a.v_sizes, op.v) ||
      !set_strides(a.out, a.out_sizes, op.out) || !set_bias(a, op))
    return std::nullopt;
  if (op.use == Attention::Use::Forward) return a;
  // Up to that version, key counts that do not fill the kernel's tiles need a separate mask.
  if (version <= kRaggedKeys && op.keys % 128 != 0) return std::nullopt;
  if (!set_strides(a.dout, a.out_sizes, op.dout) || !set_strides(a.dq, a.q_sizes, op.dq) || !set_strides(a.dk, a.k_sizes, op.dk) ||
      !set_strides(a.dv, a.v_sizes, op.dv))
    return std::nullopt;
  return a;
}

void add_attention(DnnGraph& graph, const DnnAttention& attention) {
  Parts parts{graph, attention};
  attention.use == Attention::Use::Forward ? parts.forward() : parts.backward();
}

}  // namespace naru::backends::cuda
