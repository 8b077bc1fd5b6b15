// Scans along a dimension, for other operators. Nothing is recorded for autograd.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

// cummax (cummin) values in t's dtype: NaN from the first NaN on; of equal elements the later one.
Tensor running_extreme(const Tensor& t, int64_t dim, bool greatest);

}  // namespace naru::ops
