// Between OpenCL devices.
#pragma once

#include <cstddef>

#include "naru/device.h"

namespace naru::backends::opencl {

// Copies from another OpenCL device's memory to the host, and waits.
void read_elsewhere(Device device, const void* source, void* target, size_t bytes);

}  // namespace naru::backends::opencl
