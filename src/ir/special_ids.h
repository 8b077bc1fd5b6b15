// More internal operators (ir/op_ids.h), each a formula that whole compositions would be of: torch.special's, and others of one kernel.
#pragma once

#include "ir/op_ids.h"

namespace naru::ir::op {

enum : OpId {
  erfcx = kCount,
  log_ndtr,
  ndtri,
  bessel_i0,
  bessel_i1,
  bessel_i0e,
  bessel_i1e,   // (a)
  next_after,   // (a, b)
  hard_shrink,  // (a, lambda)
  soft_shrink,  // (a, lambda)
  kAll
};

}  // namespace naru::ir::op
