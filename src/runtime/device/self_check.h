// Self check: a device counts as available only if a kernel ran on it and gave the right bits.
#pragma once

#include <string>

#include "runtime/device/backend.h"

namespace naru::runtime {

// Allocates device memory, copies numbers there, computes with them and copies the results back. Returns "" if every bit is right, else
// what differs. Throws what the device throws.
std::string wrong_numbers(Backend& backend, Device device);

// Runs Backend::self_check in a child process. For drivers that leave threads in the process: after that, forked children can't use the
// device.
Availability check_in_child(Backend& backend, DeviceType kind);
// The same of one device.
Availability check_in_child(Backend& backend, Device device);

}  // namespace naru::runtime
