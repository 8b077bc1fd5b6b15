// Attention as one instruction, which a device's library does (ir/attention.h).
#pragma once

#include <functional>
#include <vector>

#include "ops/attention.h"

namespace naru::ops {

// Gradients of query, key and value of the attention of `saved` (query, key, value), with history where it is recorded.
using AttentionGradients = std::function<std::vector<Tensor>(const Tensor& grad, const std::vector<Tensor>& saved)>;

// Undefined where no library takes it: of other types than those of 16 bits, with dropout, with a mask that wants a gradient ... by_products: for
// gradients of gradients, and where the library is not to be used any more by the time of backward.
Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const AttentionOptions& options,
                       const AttentionGradients& by_products);

}  // namespace naru::ops
