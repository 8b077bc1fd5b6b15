// Addresses of instructions, and devices by their numbers.
#pragma once

#include <functional>

#include "ir/instruction.h"
#include "naru/device.h"

namespace naru::backends::opencl {

// Calls f with every address of the instruction that is not null. Not for copies.
void each_address(ir::Instruction& instruction, const std::function<void(void*& address)>& f);

// Copies from another OpenCL device's memory to the host, and waits.
void read_elsewhere(Device device, const void* source, void* target, size_t bytes);

}  // namespace naru::backends::opencl
