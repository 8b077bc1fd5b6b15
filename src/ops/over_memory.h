// Tensors over memory that somebody else owns.
#pragma once

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::ops {

// A tensor over memory of `device`; strides in elements (ValueError for negative ones). `release` is called when the last tensor over it is gone and
// the device has done its work there.
Tensor over_memory(Device device, void* data, const Dims& sizes, const Dims& strides, DType dtype, std::function<void()> release);

}  // namespace naru::ops
