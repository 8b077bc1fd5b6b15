#include "ops/nn/attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/device/precision.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/nn/causal_attention.h"
#include "ops/nn/fused_attention.h"
#include "ops/random/host_draws.h"
#include "ops/tensor/autocast.h"
#include "ops/tensor/common.h"
#include "ops/tensor/flops.h"
#include "runtime/memory/allocator.h"

namespace naru::ops {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kScores = int64_t{1} << 22;      // scores in a block at most ...
constexpr int64_t kMostScores = int64_t{1} << 27;  // ... or, if libraries compute the products (fewer blocks are faster), this many
constexpr int64_t kRows = 32;                      // rows in a block at least
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Query rows [from, from + rows), which attend to the first `columns` keys.
struct Block {
  int64_t number = 0, from = 0, rows = 0, columns = 0;
};

// Data shared by all blocks.
struct Plan {
  AttentionOptions o;
  int64_t queries = 0, keys = 0;
  uint64_t key = 0, offset = 0;  // of the random draws: one draw per block

  int64_t blocks() const { return (queries + o.rows - 1) / o.rows; }
  Block block(int64_t number) const {
    const int64_t from = number * o.rows, rows = std::min(o.rows, queries - from);
    return {number, from, rows, o.causal ? std::min(keys, from + rows) : keys};
  }
};

Dims batch_of(const Tensor& t) { return Dims(std::span<const int64_t>(t.sizes()).first(static_cast<size_t>(t.dim() - 2))); }
Tensor with_batch(const Tensor& t, Dims shape) {
  if (batch_of(t) == shape) return t;
  shape.push_back(t.size(-2)), shape.push_back(t.size(-1));
  return t.expand(shape);
}

// The block's rows of the mask; the whole mask if it broadcasts over rows.
Tensor part_of(const Tensor& mask, const Block& b) {
  Tensor part = mask;
  if (mask.dim() >= 2 && mask.size(-2) != 1) part = part.narrow(-2, b.from, b.rows);
  return part;
}

// A block's weights before dropout.
Tensor weights_of(const Plan& p, const Block& b, const Tensor& q, const Tensor& k, const Tensor& mask) {
  const Tensor rows = b.rows == p.queries ? q : q.narrow(-2, b.from, b.rows);
  const Tensor seen = b.columns == p.keys ? k : k.narrow(-2, 0, b.columns);
  Tensor scores = matmul(rows * p.o.scale, seen.transpose(-2, -1));
  if (p.o.causal && b.from + 1 < b.columns) {
    const Options whole(DType::I64, q.device());
    const Tensor row = arange(b.from, b.from + b.rows, 1, whole).unsqueeze(-1), column = arange(0, b.columns, 1, whole);
    scores = masked_fill(scores, column > row, kHidden);
  }
  if (!mask.defined()) return softmax(scores, -1);
  const Tensor part = part_of(mask, b);
  scores = part.dtype() == DType::Bool ? masked_fill(scores, part.logical_not(), kHidden) : scores + part.to(scores.dtype());
  const Tensor blind = all(scores.detach() == kHidden, Dims{-1}, true);
  return masked_fill(softmax(masked_fill(scores, blind, 0.0), -1), blind, 0.0);
}

// The mask of weights that dropout keeps in a block; undefined: all.
Tensor kept_of(const Plan& p, const Block& b, const Tensor& weights) {
  if (p.o.dropout == 0) return {};
  const NoGrad off;
  if (draws_as_pytorch()) {  // for all keys: PyTorch also draws for masked keys
    Dims whole = weights.sizes();
    whole.back() = p.keys;
    Tensor drawn = make_result(whole, DType::Bool, weights.device(), "dropout", true);
    host_bernoulli(drawn, 1 - p.o.dropout, nullptr);
    return drawn.narrow(-1, 0, b.columns);
  }
  Tensor kept = make_result(weights.sizes(), DType::Bool, weights.device(), "dropout", true);
  const OpOperand operands[] = {{nullptr, 1 - p.o.dropout, DType::F32},
                                {nullptr, static_cast<int64_t>(p.key), DType::I64},
                                {nullptr, static_cast<int64_t>(p.offset + static_cast<uint64_t>(b.number)), DType::I64}};
  if (kept.numel()) apply_into(ir::op::bernoulli, operands, kept);
  return kept;
}
Tensor dropped(const Plan& p, const Tensor& t, const Tensor& kept) {
  return kept.defined() ? t * kept * (p.o.dropout == 1 ? 0.0 : 1 / (1 - p.o.dropout)) : t;
}

Tensor first_columns(const Tensor& t, const Block& b) { return b.columns == t.size(-2) ? t : t.narrow(-2, 0, b.columns); }

Tensor run_block(const Plan& p, const Block& b, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const Tensor weights = weights_of(p, b, q, k, mask);
  return matmul(dropped(p, weights, kept_of(p, b, weights)), first_columns(v, b));
}

// A zero tensor for sums over blocks, in float32 or wider.
Tensor sum_like(const Tensor& t, bool needed) {
  return needed ? zeros(t.sizes(), Options(size_of(t.dtype()) == 2 ? DType::F32 : t.dtype(), t.device())) : Tensor();
}

// FLOPs of `scores` products of queries with keys and `sums` products of weights with values.
int64_t products(const Dims& batch, const Tensor& q, const Tensor& k, const Tensor& v, int64_t scores, int64_t sums) {
  return 2 * product(batch) * q.size(-2) * k.size(-2) * (scores * q.size(-1) + sums * v.size(-1));
}

// Those of q, k, v and mask that are needed.
Tensors gradients(const Plan& p, const Tensor& grad, const Tensors& saved, std::array<bool, 4> need) {
  const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &mask = saved[3];
  const FlopsOfAll counted("scaled_dot_product_attention_backward", products(batch_of(q), q, k, v, 3, 2));
  Tensor dk = sum_like(k, need[1]), dv = sum_like(v, need[2]), dmask = sum_like(mask.defined() ? mask : q, need[3]);
  Tensors dq;
  for (int64_t i = 0; i < p.blocks(); ++i) {
    const Block b = p.block(i);
    const Tensor g = grad.narrow(-2, b.from, b.rows), weights = weights_of(p, b, q, k, mask), kept = kept_of(p, b, weights);
    if (need[2]) first_columns(dv, b).add_(matmul(dropped(p, weights, kept).transpose(-2, -1), g));
    if (!need[0] && !need[1] && !need[3]) continue;
    const Tensor dw = dropped(p, matmul(g, first_columns(v, b).transpose(-2, -1)), kept);
    const Tensor ds = weights * (dw - (weights * dw).sum({-1}, true));
    if (need[0]) dq.push_back(matmul(ds, first_columns(k, b)) * p.o.scale);
    if (need[1]) first_columns(dk, b).add_(matmul(ds.transpose(-2, -1), q.narrow(-2, b.from, b.rows) * p.o.scale));
    if (need[3]) {
      const Tensor place = part_of(dmask, b);
      place.add_(sum_to_size(ds, place.sizes()));
    }
  }
  const auto as = [](const Tensor& sum, const Tensor& like) { return sum.defined() ? sum.to(like.dtype()) : sum; };
  return {need[0] ? cat(dq, -2) : Tensor(), as(dk, k), as(dv, v), as(dmask, mask)};
}

// The number of scores in a block. Sums over blocks depend on it, so it is a constant wherever results must be bit-identical.
int64_t scores_of_block(const Tensor& q, int64_t all) {
  if (all <= kScores || !runtime::queue_of(q.device()).capabilities().library_products || deterministic_algorithms()) return kScores;
  constexpr int64_t kShare = 8;  // fraction of the free memory: several tensors of scores exist at a time
  const auto cached = runtime::allocator_of(q.device()).stats();
  const auto free = static_cast<int64_t>(runtime::free_memory(q.device()) + (cached.reserved() - cached.allocated()));
  return std::clamp(free / kShare / static_cast<int64_t>(size_of(q.dtype())), kScores, kMostScores);
}
int64_t rows_of_block(int64_t batch, int64_t queries, int64_t keys, int64_t scores) {
  const int64_t row = std::max<int64_t>(batch * keys, 1), fit = scores / row / kRows * kRows;
  return std::min(std::max<int64_t>(queries, 1), std::max(kRows, fit));
}

// Repeats the heads of t, so that it has as many as q (grouped-query attention).
Tensor repeated_heads(const Tensor& t, const Tensor& q) { return repeat_interleave(t, q.size(-3) / t.size(-3), -3); }
// The gradient of t from that of the repeated heads: sums over the repetitions.
Tensor sum_of_heads(const Tensor& g, const Tensor& t) {
  Dims apart = t.sizes();
  const auto head = static_cast<std::ptrdiff_t>(apart.size() - 3);
  Dims sizes(std::span<const int64_t>(apart).first(static_cast<size_t>(head + 1)));
  sizes.push_back(g.size(-3) / t.size(-3)), sizes.push_back(t.size(-2)), sizes.push_back(t.size(-1));
  return g.reshape(sizes).sum({-3});
}

// Like `gradients`, but with the original arguments of attention (heads not repeated).
Tensors gradients_of(const Tensor& grad, const Tensors& saved, const Tensor& mask, const AttentionOptions& o, std::array<bool, 3> need) {
  const bool grouped = o.grouped && saved[1].size(-3) != saved[0].size(-3);
  const Tensor &q = saved[0], k = grouped ? repeated_heads(saved[1], q) : saved[1], v = grouped ? repeated_heads(saved[2], q) : saved[2];
  Dims batch = broadcast_shapes(batch_of(q), broadcast_shapes(batch_of(k), batch_of(v)));
  Plan p{o, q.size(-2), k.size(-2)};
  p.o.rows = rows_of_block(product(batch), p.queries, p.keys, scores_of_block(q, product(batch) * p.queries * p.keys));
  Tensors all =
      gradients(p, grad, {with_batch(q, batch), with_batch(k, batch), with_batch(v, batch), mask}, {need[0], need[1], need[2], false});
  all.pop_back();
  for (size_t i = 1; grouped && i < 3; ++i)
    if (need[i]) all[i] = sum_of_heads(all[i], saved[i]);
  return all;
}

// Whether the tiles above the diagonal are left out (causal_attention.h). Devices' libraries are slower at many small products, and gradients of
// 16-bit weights would be rounded more often.
bool by_tiles(const Plan& p, const Tensor& query, const Tensor& mask, int64_t batch, int64_t all) {
  return p.o.causal && !mask.defined() && p.o.dropout == 0 && all > 0 && !is_half(query.dtype()) &&
         causal_tile(batch, p.queries, p.keys) < p.queries && !runtime::queue_of(query.device()).capabilities().library_products;
}

Tensor causal(const Plan& p, const Dims& batch, const Tensor& query, const Tensor& key, const Tensor& value, bool keeps) {
  // A node for each, in this order: the gradients of a tensor that is several of them are added in that of its nodes.
  const auto flat = [&](const Tensor& t) {
    const Dims sizes{product(batch), t.size(-2), t.size(-1)};
    return t.sizes() == sizes ? t.view(sizes) : with_batch(t, batch).reshape(sizes);
  };
  const Tensor q = flat(query), k = flat(key), v = flat(value);
  const CausalOptions o{p.o.scale, causal_tile(q.size(0), p.queries, p.keys), p.o.rows, keeps && p.blocks() == 1};
  const auto formula = [p](const Tensor& grad, const Tensors& saved, std::array<bool, 3> need) {
    Tensors all = gradients(p, grad, {saved[0], saved[1], saved[2], Tensor()}, {need[0], need[1], need[2], false});
    all.pop_back();
    return all;
  };
  Dims sizes = batch;
  sizes.push_back(p.queries), sizes.push_back(v.size(-1));
  return causal_attention(q, k, v, o, formula).view(sizes);
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const AttentionOptions& options) {
  // Few queries are products with a vector. Forward derivatives have rules of operators only.
  constexpr int64_t kLeastQueries = 8;
  if (!autograd::tangents_carried && query.dim() >= 2 && query.size(-2) >= kLeastQueries) {
    const auto by_products = [mask, options](const Tensor& grad, const Tensors& saved, std::array<bool, 3> need) {
      return gradients_of(grad, saved, mask, options, need);
    };
    if (Tensor out = fused_attention(query, key, value, mask, options, by_products); out.defined()) return out;
  }
  // For 16-bit types on the cpu, scores and weights are float32 and the result is rounded once. Accelerators multiply 16-bit types much faster.
  if (const DType type = query.dtype(); query.device().is_cpu() && is_half(type) && key.dtype() == type && value.dtype() == type) {
    const Tensor wide = mask.defined() && is_floating(mask.dtype()) ? mask.to(DType::F32) : mask;
    return attention(query.to(DType::F32), key.to(DType::F32), value.to(DType::F32), wide, options).to(type);
  }
  if (options.grouped) {
    AttentionOptions plain = options;
    plain.grouped = false;
    return attention(query, repeated_heads(key, query), repeated_heads(value, query), mask, plain);
  }
  Dims batch = broadcast_shapes(batch_of(query), broadcast_shapes(batch_of(key), batch_of(value)));
  if (mask.defined() && mask.dim() > 2) batch = broadcast_shapes(batch, batch_of(mask));
  const FlopsOfAll counted("scaled_dot_product_attention", products(batch, query, key, value, 1, 1));
  Plan p{options, query.size(-2), key.size(-2)};
  const int64_t all = product(batch) * p.queries * p.keys;
  if (p.o.rows == 0) p.o.rows = rows_of_block(product(batch), p.queries, p.keys, scores_of_block(query, all));
  const bool small = autograd::tangents_carried && all <= kScores;  // operators that have rules of forward derivatives
  if (!small && by_tiles(p, query, mask, product(batch), all)) return causal(p, batch, query, key, value, all <= kScores);
  const bool as_pytorch = p.o.dropout > 0 && draws_as_pytorch();  // PyTorch draws all rows of one head before the next head
  if (as_pytorch) p.o.rows = std::max<int64_t>(p.queries, 1);
  const auto blocks = static_cast<uint64_t>(p.blocks());
  if (p.o.dropout > 0 && !as_pytorch) {
    std::tie(p.key, p.offset) = draw(nullptr);
    if (blocks > 1) default_generator().draw(blocks - 1);
  }
  // A single block with many scores (on a device with enough memory) is not saved for backward either.
  const bool kept = blocks <= 1 && (all <= kScores || as_pytorch || options.rows != 0 || p.queries <= kRows);
  if (kept) return run_block(p, {0, 0, p.queries, p.o.causal ? std::min(p.keys, p.queries) : p.keys}, query, key, value, mask);
  const Tensor q = with_batch(query, batch), k = with_batch(key, batch), v = with_batch(value, batch);
  Tensor out;
  {
    const NoGrad off;
    Tensors parts;
    for (int64_t i = 0; i < p.blocks(); ++i) parts.push_back(run_block(p, p.block(i), q, k, v, mask));
    out = cat(parts, -2);
  }
  return autograd::record(std::move(out), "ScaledDotProductAttentionBackward0", {&q, &k, &v, &mask}, {&q, &k, &v, &mask},
                          [p](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                            return gradients(p, g[0], saved, {needed[0], needed[1], needed[2], needed[3]});
                          });
}

}  // namespace naru::ops
