#include "ops/nn/fused_attention.h"

#include <atomic>
#include <limits>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/device/precision.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/flops.h"

namespace naru::ops {
namespace {

using ir::Attention;

using Tensors = std::vector<Tensor>;

std::atomic<bool> fused_allowed{true};

// Size of dimension d (0 ... 3) when t is extended to four dimensions on the left.
int64_t size_of_four(const Tensor& t, int64_t d) {
  const int64_t at = d - 4 + t.dim();
  return at < 0 ? 1 : t.size(at);
}
Attention::Sizes four(const Dims& sizes, const Dims& strides) {
  Attention::Sizes s{};
  for (size_t d = 0, n = sizes.size(); d < n; ++d) s[4 - n + d] = sizes[d] == 1 ? 0 : strides[d];
  return s;
}

// True if the device can read t in place: the cpu always, libraries with unit stride in the last dimension and 16-byte aligned rows.
bool is_read_in_place(const Tensor& t) {
  constexpr int64_t kLoad = 8, kBytes = 16;
  if (t.device().is_cpu()) return true;
  const TensorImpl& i = *t.impl();
  const size_t n = i.sizes.size();
  if (i.strides[n - 1] != 1 || i.offset % kLoad != 0 || reinterpret_cast<uintptr_t>(i.storage->data) % kBytes != 0) return false;
  for (size_t d = 0; d + 1 < n; ++d)
    if (i.sizes[d] != 1 && (i.strides[d] <= 0 || i.strides[d] % kLoad != 0)) return false;
  return true;
}
Dims compatible_strides(const Tensor& t) { return is_read_in_place(t) ? t.strides() : contiguous_strides(t.sizes()); }
Tensor copied(const Tensor& t, const Dims& strides) {
  const Tensor out = make_result(t.sizes(), strides, t.dtype(), t.device(), "scaled_dot_product_attention");
  const OpOperand from{&t, {}, t.dtype()};
  apply_into(ir::op::copy, {&from, 1}, out);
  return out;
}
Tensor make_compatible(const Tensor& t) {
  const Tensor x = t.detach();
  return is_read_in_place(x) ? x : copied(x, contiguous_strides(x.sizes()));
}

Attention::Array array_laid(const Tensor& t) { return {view_of(t, t.sizes()).data, four(t.sizes(), t.strides())}; }

// Strides of a result: dense, in the dimension order of the tensor that it belongs to.
Dims dense_strides_like(const Dims& sizes, const Dims& of) { return strides_after(sizes, {&of, 1}); }

// The mask as an additive bias. A fully masked row must give 0, not NaN: its hidden scores get the lowest finite value, and the row is zeroed
// afterwards (`blind`).
struct Bias {
  Tensor added, blind;

  Bias(const Tensor& mask, DType type) {
    const double least = type == DType::F16 && mask.dtype() != DType::F32 ? -6e4 : -1e30;
    Tensor hidden;
    if (mask.dtype() == DType::Bool) {
      hidden = mask.logical_not();
      added = masked_fill(zeros(mask.sizes(), Options(type, mask.device())), hidden, least);
    } else {
      const Tensor given = mask.detach();
      hidden = given == -std::numeric_limits<double>::infinity();
      added = clamp(given.to(given.dtype() == DType::F32 ? DType::F32 : type), least).contiguous();
    }
    blind = all(hidden, Dims{-1}, true);
  }
};

// Checks sizes and types. Sets the strides of q, k and v, but not yet their addresses.
bool fill_in(Attention& op, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const int64_t n = q.dim();
  if (n < 2 || n > 4 || k.dim() != n || v.dim() != n || q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return false;
  if (k.dtype() != q.dtype() || v.dtype() != q.dtype() || k.device() != q.device() || v.device() != q.device()) return false;
  op.dtype = q.dtype(), op.scale = o.scale, op.causal = o.causal;
  op.batch = size_of_four(q, 0), op.heads = size_of_four(q, 1), op.queries = q.size(-2), op.width = q.size(-1);
  op.key_heads = size_of_four(k, 1), op.keys = k.size(-2), op.value_width = v.size(-1);
  if (size_of_four(k, 0) != op.batch || size_of_four(v, 0) != op.batch || size_of_four(v, 1) != op.key_heads) return false;
  if (k.size(-1) != op.width || v.size(-2) != op.keys) return false;
  if (op.key_heads != op.heads && op.key_heads != 1 && !(o.grouped && op.heads % op.key_heads == 0)) return false;
  op.q.strides = four(q.sizes(), compatible_strides(q)), op.k.strides = four(k.sizes(), compatible_strides(k));
  op.v.strides = four(v.sizes(), compatible_strides(v));
  return true;
}

// cuDNN's gradients are wrong (9.19 on an H100) if one row of the bias is broadcast over all queries, so expand it.
Tensor for_each_query(const Tensor& mask, const Tensor& query) {
  if (!mask.defined() || mask.dim() == 0 || (mask.dim() >= 2 && mask.size(-2) != 1)) return mask;
  const Tensor row = mask.dim() == 1 ? mask.unsqueeze(0) : mask;
  Dims sizes = row.sizes();
  sizes[sizes.size() - 2] = query.size(-2);
  return row.expand(sizes);
}

bool fill_in_bias(Attention& op, const Tensor& mask) {
  if (!mask.defined()) return true;
  if (mask.dim() > 4 || mask.dim() == 0 || mask.size(-1) != op.keys) return false;
  const Attention::Sizes whole = op.sizes_of_bias();
  for (int64_t d = 0; d < 3; ++d)
    if (const int64_t n = size_of_four(mask, d); n != 1 && n != whole[static_cast<size_t>(d)]) return false;
  op.biased = true;
  op.bias_type = mask.dtype() == DType::F32 ? DType::F32 : op.dtype;
  op.bias.strides = four(mask.sizes(), contiguous_strides(mask.sizes()));
  return true;
}

Dims result_sizes(const Tensor& q, const Tensor& v) {
  Dims sizes = q.sizes();
  sizes.back() = v.size(-1);
  return sizes;
}

// The backward instruction, with gradients that have the strides of their tensors.
Attention backward_of(const Attention& forward, const Tensor& q, const Tensor& k, const Tensor& v) {
  Attention op = forward;
  const auto beside = [](const Tensor& t) { return four(t.sizes(), dense_strides_like(t.sizes(), compatible_strides(t))); };
  op.use = Attention::Use::Backward;
  op.dout.strides = op.out.strides, op.dq.strides = beside(q), op.dk.strides = beside(k), op.dv.strides = beside(v);
  return op;
}

void count_products(const char* name, const Attention& op, int64_t scores, int64_t sums) {
  count_flops(name, 2 * op.batch * op.heads * op.queries * op.keys * (scores * op.width + sums * op.value_width));
}

struct Saved {
  Attention op;
  Tensor stats, bias, blind;
};

Tensors fused_gradients(const Saved& s, const Tensor& grad, const Tensors& saved, const AttentionGradients& by_products,
                        std::array<bool, 3> need) {
  const Tensor q = make_compatible(saved[0]), k = make_compatible(saved[1]), v = make_compatible(saved[2]), out = make_compatible(saved[3]);
  Attention laid = s.op;  // hooks on saved tensors may return them with other strides
  laid.q.strides = four(q.sizes(), q.strides()), laid.k.strides = four(k.sizes(), k.strides());
  laid.v.strides = four(v.sizes(), v.strides()), laid.out.strides = four(out.sizes(), out.strides());
  Attention op = backward_of(laid, q, k, v);
  const bool differentiable = grad_enabled() && autograd::recording({&grad, &saved[0], &saved[1], &saved[2]});
  if (differentiable || deterministic_algorithms() || !runtime::queue_of(q.device()).takes(op))
    return by_products(grad, {saved[0], saved[1], saved[2]}, need);
  // Libraries compute all three.
  const std::array<bool, 3> made = q.device().is_cpu() ? need : std::array{true, true, true};
  count_products("scaled_dot_product_attention_backward", op, 1 + made[0] + made[1], (made[0] || made[1]) + made[2]);
  const FlopsOfAll counted;
  const NoGrad off;
  Tensor g = s.blind.defined() ? masked_fill(grad.detach(), s.blind, 0.0) : grad.detach();
  if (!(g.strides() == out.strides()) || !is_read_in_place(g)) g = copied(g, out.strides());
  const auto beside = [&](const Tensor& t, size_t i) {
    return made[i]
               ? make_result(t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), t.device(), "scaled_dot_product_attention")
               : Tensor();
  };
  const Tensor dq = beside(q, 0), dk = beside(k, 1), dv = beside(v, 2);
  op.q = array_laid(q), op.k = array_laid(k), op.v = array_laid(v), op.out = array_laid(out), op.stats = array_laid(s.stats);
  op.dout = array_laid(g);
  const auto lay = [](Attention::Array& a, const Tensor& t) { a = t.defined() ? array_laid(t) : Attention::Array(); };
  lay(op.dq, dq), lay(op.dk, dk), lay(op.dv, dv);
  if (op.biased) op.bias.data = array_laid(s.bias).data;
  submit(std::move(op), {&q, &k, &v, &out, &s.stats, &s.bias, &g}, {&dq, &dk, &dv});
  return {dq, dk, dv};
}

}  // namespace

bool allow_fused_attention(bool on) noexcept { return fused_allowed.exchange(on); }

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& given_mask,
                       const AttentionOptions& options, const AttentionGradients& by_products) {
  const Device device = query.device();
  const DType type = query.dtype();
  if (device.is_meta() || !(is_half(type) || type == DType::F32) || options.dropout != 0 || !fused_allowed || deterministic_algorithms())
    return {};
  if (given_mask.defined() && (given_mask.device() != device || autograd::recording({&given_mask}))) return {};
  const bool recorded = autograd::recording({&query, &key, &value});
  const Tensor mask = recorded ? for_each_query(given_mask, query) : given_mask;
  Attention op;
  if (!fill_in(op, query, key, value, options) || !fill_in_bias(op, mask)) return {};
  const Dims sizes = result_sizes(query, value), strides = dense_strides_like(sizes, compatible_strides(query));
  op.out.strides = four(sizes, strides), op.stats.strides = {op.heads * op.queries, op.queries, 1, 1};
  const runtime::Queue& queue = runtime::queue_of(device);
  if (!queue.takes(op) || (recorded && !queue.takes(backward_of(op, query, key, value)))) return {};
  count_products("scaled_dot_product_attention", op, 1, 1);
  const FlopsOfAll counted;
  Saved s;
  Tensor out;
  {
    const NoGrad off;
    const Tensor q = make_compatible(query), k = make_compatible(key), v = make_compatible(value);
    if (mask.defined()) {
      Bias bias(mask, query.dtype());
      s.bias = std::move(bias.added), s.blind = std::move(bias.blind);
      op.bias.data = array_laid(s.bias).data;
    }
    out = make_result(sizes, strides, query.dtype(), device, "scaled_dot_product_attention");
    s.stats = make_result({op.batch, op.heads, op.queries, 1}, DType::F32, device, "scaled_dot_product_attention");
    op.q = array_laid(q), op.k = array_laid(k), op.v = array_laid(v), op.out = array_laid(out), op.stats = array_laid(s.stats);
    s.op = op;
    submit(std::move(op), {&q, &k, &v, &s.bias}, {&out, &s.stats});
    if (s.blind.defined()) masked_fill_(out, s.blind, 0.0);
  }
  const char* const node = device.is_cpu() ? "ScaledDotProductFlashAttentionForCpuBackward0"
                           : is_half(type) ? "ScaledDotProductCudnnAttentionBackward0"
                                           : "ScaledDotProductEfficientAttentionBackward0";
  return autograd::record(
      std::move(out), node, {&query, &key, &value}, {&query, &key, &value},
      [s, by_products](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        return fused_gradients(s, g[0], saved, by_products, {needed[0], needed[1], needed[2]});
      },
      true);
}

}  // namespace naru::ops
