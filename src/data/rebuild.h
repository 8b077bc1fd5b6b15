// Tensors as files describe them.
#pragma once

#include "naru/tensor.h"

namespace naru::data {

// Throw ValueError for what no tensor can have, and for what reaches beyond the storage.
// A tensor over the storage `base`, a vector.
Tensor laid_over(const Tensor& base, const Dims& size, const Dims& stride, int64_t offset);
// One of the meta device.
Tensor without_elements(DType dtype, const Dims& size, const Dims& stride);

}  // namespace naru::data
