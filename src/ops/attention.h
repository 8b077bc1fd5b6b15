// Attention without its table of weights: by a device's library, or blocks of rows of queries, each forgotten once its part of the result is made.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

struct AttentionOptions {
  double scale = 1;
  bool causal = false;   // position i sees positions up to i
  double dropout = 0;    // of the weights
  int64_t rows = 0;      // of a block; 0: as many as the sizes allow
  bool grouped = false;  // each head (dimension -3) of k and v serves as many neighbours of q as q has more of them
};

// softmax(scale q kᵀ + mask) v: q (..., L, E), k (..., S, E), v (..., S, Ev), leading dimensions that broadcast; mask undefined, bool (true takes part) or
// floating point, broadcast to (..., L, S). A row that the mask hides altogether gives 0. Where all scores are many, backward computes each block's weights
// anew (and draws the same numbers for dropout), so that memory grows with L and with S, not with their product.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionOptions& options);

// Whether devices' libraries may do it as a whole; without them it is made of products. For the process; at first they may. Returns what it was.
bool allow_fused_attention(bool on) noexcept;
bool fused_attention_allowed() noexcept;

}  // namespace naru::ops
