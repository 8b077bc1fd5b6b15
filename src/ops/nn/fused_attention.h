// Attention as one instruction, of the cpu or of a device's library (ir/attention.h).
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "ops/nn/attention.h"

namespace naru::ops {

// Returns those of the gradients of query, key and value that are needed, from `saved` (query, key, value), differentiable if grad mode is on.
using AttentionGradients =
    std::function<std::vector<Tensor>(const Tensor& grad, const std::vector<Tensor>& saved, std::array<bool, 3> needed)>;

// Returns an undefined tensor if the device does not take the call: float64, dropout, a mask that requires grad, deterministic algorithms ... by_products: the composed
// gradient, for gradients of gradients and if the library has been disabled by the time backward runs.
Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const AttentionOptions& options,
                       const AttentionGradients& by_products);

}  // namespace naru::ops
