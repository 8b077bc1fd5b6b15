// hardshrink and softshrink as one kernel, without a history.
#pragma once

#include "ir/special_ids.h"
#include "ops/common.h"
#include "ops/numbers.h"

namespace naru::ops {

inline Tensor hard_shrunk(const Tensor& x, double lambd) {
  return apply(ir::op::hard_shrink, {{&x, {}, x.dtype()}, {nullptr, as_half(lambd, x.dtype()), x.dtype()}}, x.dtype(), "hardshrink");
}
inline Tensor soft_shrunk(const Tensor& x, double lambd) {
  return apply(ir::op::soft_shrink, {{&x, {}, x.dtype()}, {nullptr, as_half(lambd, x.dtype()), x.dtype()}}, x.dtype(), "softshrink");
}

}  // namespace naru::ops
