// Reductions that operators build on. None records anything for autograd.
#pragma once

#include "ops/reduction.h"

namespace naru::ops {

// Sum over the dimensions of `set` divided by their count; computed in, and of, type `out` (16-bit types: in float32, rounded once).
Tensor reduce_mean(const Tensor& t, const DimSet& set, bool keepdim, DType out, const char* name);
// Greatest (least) element over the dimensions of `set`, of t's type; NaN wins.
Tensor reduce_extreme(const Tensor& t, bool greatest, const DimSet& set, bool keepdim, const char* name);

}  // namespace naru::ops
