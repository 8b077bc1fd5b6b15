// Helpers of losses that are compositions.
#pragma once

#include "naru/ops.h"
#include "naru/ops/functions.h"

namespace naru::ops {

inline Tensor reduced(const Tensor& losses, Reduction reduction) {
  return reduction == Reduction::Mean ? mean(losses) : reduction == Reduction::Sum ? sum(losses) : losses;
}
// The losses where the condition is true, else 0.
inline Tensor only(const Tensor& condition, const Tensor& losses) { return where(condition, losses, 0); }
// max(x, 0).
inline Tensor hinge(const Tensor& x) { return clamp_min(x, 0); }

}  // namespace naru::ops
