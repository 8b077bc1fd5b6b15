// A device counts as available when a kernel ran on it and gave the right bits.
#pragma once

#include <string>

#include "runtime/backend.h"

namespace naru::runtime {

// Has the device take memory, copy numbers there, compute with them and copy the results back. "" where each bit is as
// it should be, else what is not. Throws what the device throws.
std::string wrong_numbers(Backend& backend, Device device);

// Backend::self_check in a child process: for drivers that leave threads behind, as a process that has them can't fork children
// that use the device.
Availability check_in_child(Backend& backend, DeviceType kind);

}  // namespace naru::runtime
