#include "ops/nn/causal_attention.h"

#include <algorithm>
#include <limits>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/tensor/common.h"
#include "ops/tensor/flops.h"

namespace naru::ops {
namespace {

using Tensors = std::vector<Tensor>;

// Query rows [from, from + rows), which see the first `columns` keys: all of them those up to `from`, and of the others those up to itself.
struct Tile {
  int64_t from, rows, columns;
};

class Causal {
 public:
  Causal(const Tensor& q, const Tensor& k, const Tensor& v, const CausalOptions& o)
      : q_(q.detach()), k_(k.detach()), v_(v.detach()), o_(o), queries_(q.size(1)), keys_(k.size(1)) {
    const Tensor place = arange(0, o.tile, 1, Options(DType::I64, q.device()));
    hidden_ = place > place.unsqueeze(-1);
  }

  // weights: receives those of all rows, if it is defined; what lies above the tiles is left as it is.
  Tensor forward(const Tensor& weights) const {
    Tensors parts;
    for (const Tile& t : tiles(0, queries_)) {
      const Tensor w = weights_of(t);
      if (weights.defined()) of_tile(weights, t, 0).copy_(w);
      parts.push_back(matmul(w, v_.narrow(1, 0, t.columns)));
    }
    return cat(parts, 1);
  }

  // kept: the weights of all rows, or undefined.
  Tensors backward(const Tensor& grad, const Tensor& kept, std::array<bool, 3> need) const {
    const FlopsOfAll counted("scaled_dot_product_attention_backward",
                             2 * q_.size(0) * queries_ * keys_ * (3 * q_.size(2) + 2 * v_.size(2)));
    Tensors dq;
    Tensor dk = need[1] ? zeros_like(k_) : Tensor(), dv = need[2] ? zeros_like(v_) : Tensor();
    for (int64_t from = 0; from < queries_; from += o_.block) {
      const int64_t rows = std::min(o_.block, queries_ - from), columns = std::min(keys_, from + rows);
      const auto own = [&] { return make_result({q_.size(0), rows, columns}, q_.dtype(), q_.device(), "scaled_dot_product_attention"); };
      const Tensor weights = kept.defined() ? kept : own(), slopes = need[0] || need[1] ? own() : Tensor();
      for (const Tile& t : tiles(from, from + rows)) {
        if (!kept.defined()) of_tile(weights, t, from).copy_(weights_of(t));
        if (!slopes.defined()) continue;
        const Tensor w = of_tile(weights, t, from), slope = of_tile(slopes, t, from);
        const Tensor dw = matmul(grad.narrow(1, t.from, t.rows), v_.narrow(1, 0, t.columns).transpose(1, 2));
        slope.copy_(w * (dw - (w * dw).sum({-1}, true)));
        if (need[0]) dq.push_back(matmul(slope, k_.narrow(1, 0, t.columns)) * o_.scale);
      }
      if (need[1]) add_sums(dk, slopes, q_.narrow(1, from, rows) * o_.scale, from);
      if (need[2]) add_sums(dv, weights, grad.narrow(1, from, rows), from);
    }
    return {need[0] ? cat(dq, 1) : Tensor(), dk, dv};
  }

 private:
  std::vector<Tile> tiles(int64_t from, int64_t end) const {
    std::vector<Tile> list;
    for (; from < end; from += o_.tile) {
      const int64_t rows = std::min(o_.tile, end - from);
      list.push_back({from, rows, std::min(keys_, from + rows)});
    }
    return list;
  }
  // The tile's part of a matrix whose first row is query `first`.
  static Tensor of_tile(const Tensor& matrix, const Tile& t, int64_t first) {
    return matrix.narrow(1, t.from - first, t.rows).narrow(2, 0, t.columns);
  }
  Tensor weights_of(const Tile& t) const {
    Tensor scores = matmul(q_.narrow(1, t.from, t.rows) * o_.scale, k_.narrow(1, 0, t.columns).transpose(1, 2));
    if (const int64_t partly = t.columns - t.from; partly > 1)
      masked_fill_(scores.narrow(2, t.from, partly), hidden_.narrow(0, 0, t.rows).narrow(1, 0, partly),
                   -std::numeric_limits<double>::infinity());
    return softmax(scores, -1);
  }
  // Adds matrixᵀ rows to `sum`, where matrix and rows begin at query `first`: each key's element is one sum over the queries that see it.
  void add_sums(const Tensor& sum, const Tensor& matrix, const Tensor& rows, int64_t first) const {
    const auto add = [&](int64_t column, int64_t columns, int64_t row) {
      const int64_t count = rows.size(1) - row;
      if (columns <= 0) return;
      const Tensor part = matrix.narrow(1, row, count).narrow(2, column, columns);
      sum.narrow(1, column, columns).add_(matmul(part.transpose(1, 2), rows.narrow(1, row, count)));
    };
    add(0, std::min(first, keys_), 0);
    for (const Tile& t : tiles(first, first + rows.size(1))) add(t.from, t.columns - t.from, t.from - first);
  }

  Tensor q_, k_, v_, hidden_;
  CausalOptions o_;
  int64_t queries_, keys_;
};

}  // namespace

int64_t causal_tile(int64_t n, int64_t queries, int64_t keys) {
  constexpr int64_t kRows = 64, kScores = 1 << 16;  // at least so many, or the calls cost more than is won
  const int64_t row = std::max<int64_t>(1, n * std::min(queries, keys));
  return std::max(kRows, (kScores + row - 1) / row);
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, const CausalOptions& o, CausalFormula formula) {
  Tensor out, weights;
  {
    const NoGrad off;
    if (o.keeps) weights = make_result({q.size(0), q.size(1), k.size(1)}, q.dtype(), q.device(), "scaled_dot_product_attention");
    out = Causal(q, k, v, o).forward(weights);
  }
  return autograd::record(std::move(out), "ScaledDotProductAttentionBackward0", {&q, &k, &v}, {&q, &k, &v, &weights},
                          [o, formula = std::move(formula)](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                            const std::array<bool, 3> need{needed[0], needed[1], needed[2]};
                            if (grad_enabled()) return formula(g[0], saved, need);
                            return Causal(saved[0], saved[1], saved[2], o).backward(g[0], saved[3], need);
                          });
}

}  // namespace naru::ops
