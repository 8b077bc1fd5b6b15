// hardshrink and softshrink as one kernel each. Nothing is recorded for autograd.
#pragma once

#include "ir/special_ids.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"

namespace naru::ops {

inline Tensor hard_shrunk(const Tensor& x, double lambd) {
  return apply(ir::op::hard_shrink, {{&x, {}, x.dtype()}, {nullptr, as_half(lambd, x.dtype()), x.dtype()}}, x.dtype(), "hardshrink");
}
inline Tensor soft_shrunk(const Tensor& x, double lambd) {
  return apply(ir::op::soft_shrink, {{&x, {}, x.dtype()}, {nullptr, as_half(lambd, x.dtype()), x.dtype()}}, x.dtype(), "softshrink");
}

}  // namespace naru::ops
