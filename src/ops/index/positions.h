// Element positions as tensors.
#pragma once

#include "naru/ops.h"

namespace naru::ops {

// 0, 1, 2 ... along `dim`, broadcast over the other dimensions.
inline Tensor positions_along(const Tensor& t, int64_t dim, DType type = DType::I64) {
  Dims line(static_cast<size_t>(t.dim()), 1);
  line[static_cast<size_t>(dim)] = t.size(dim);
  return arange(0, t.size(dim), 1, Options(type, t.device())).reshape(line).expand(t.sizes());
}

}  // namespace naru::ops
