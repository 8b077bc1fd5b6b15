// Attention in which query i sees the keys up to i, in tiles of rows: what lies above the diagonal's tiles is not computed.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "naru/tensor.h"

namespace naru::ops {

struct CausalOptions {
  double scale = 1;
  int64_t tile = 0;    // query rows in a tile
  int64_t block = 0;   // query rows over which a gradient of keys and values is one sum
  bool keeps = false;  // keep the weights for backward, rather than compute them again
};
// Returns the needed gradients of q, k and v from `saved` (q, k, v), differentiable.
using CausalFormula = std::function<std::vector<Tensor>(const Tensor& grad, const std::vector<Tensor>& saved, std::array<bool, 3> needed)>;

// Query rows in a tile for n matrices of scores, by the sizes alone; at least `queries` where tiles would not pay.
int64_t causal_tile(int64_t n, int64_t queries, int64_t keys);
// softmax(scale q kᵀ) v: q (n, L, E), k (n, S, E), v (n, S, Ev). Weights and gradients are sums in the order of the whole matrices', which have
// zeros above the diagonal.
Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, const CausalOptions& options, CausalFormula formula);

}  // namespace naru::ops
