// Scaled dot product attention without the full matrix of weights: by a device library, or in blocks of query rows whose weights are freed after use.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

struct AttentionOptions {
  double scale = 1;
  bool causal = false;   // position i attends to positions up to i
  double dropout = 0;    // probability of dropping a weight
  int64_t rows = 0;      // rows in a block; 0: as many as the sizes allow
  bool grouped = false;  // grouped-query attention: consecutive heads (dimension -3) of q share a head of k and v
};

// softmax(scale q kᵀ + mask) v: q (..., L, E), k (..., S, E), v (..., S, Ev); leading dimensions broadcast. mask: undefined, bool (true: attend) or
// floating point, broadcast to (..., L, S). A row that is fully masked gives 0. If the score matrix is large, backward recomputes each block's
// weights (with the same random numbers for dropout), so memory grows with L and with S, not with their product. Causal attention leaves out what
// lies above the diagonal (causal_attention.h).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionOptions& options);

// Enables device libraries for whole attention, for the process; otherwise attention is composed of matrix products. Enabled by default. Returns the
// previous value.
bool allow_fused_attention(bool on) noexcept;

}  // namespace naru::ops
