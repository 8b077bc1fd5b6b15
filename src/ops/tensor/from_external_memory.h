// Tensors over memory that other code owns.
#pragma once

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::ops {

// A tensor over memory of `device`; strides in elements (ValueError for negative ones). `release` is called after the last tensor over it is
// destroyed and the device has finished its work there.
Tensor from_external_memory(Device device, void* data, const Dims& sizes, const Dims& strides, DType dtype, std::function<void()> release);

}  // namespace naru::ops
