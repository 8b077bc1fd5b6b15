// Running values along a dimension that operators build on. None records anything for autograd.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

// The greatest (least) of the elements so far, of t's type: NaN from the first NaN on, of equal elements the later.
Tensor running_extreme(const Tensor& t, int64_t dim, bool greatest);

}  // namespace naru::ops
