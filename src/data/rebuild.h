// Rebuilds tensors from the descriptions in files.
#pragma once

#include "naru/tensor.h"

namespace naru::data {

// Both throw ValueError for invalid sizes or strides, and for elements outside of the storage.
// A view of the 1-D tensor `base`, which holds a storage's elements.
Tensor laid_over(const Tensor& base, const Dims& size, const Dims& stride, int64_t offset);
// A tensor on the meta device.
Tensor without_elements(DType dtype, const Dims& size, const Dims& stride);

}  // namespace naru::data
