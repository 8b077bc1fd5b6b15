// Chooses which of several backends serves a kind of device: the first, in their order of preference (src/backends/CMakeLists.txt), that
// has devices of that kind whose kernels give the right bits.
#pragma once

#include <memory>
#include <span>

#include "runtime/device/backend.h"

namespace naru::runtime {

using Backends = std::span<const std::unique_ptr<Backend>>;
// Result of Backend::self_check for a backend, given by its index in the list.
using CheckOf = const Availability& (*)(size_t backend, DeviceType kind);

// The backend's index in the list; -1: none. simulated: considers only backends that simulate devices.
int choose_backend(Backends backends, DeviceType kind, bool simulated, CheckOf check);
// Why no backend serves the kind: the reason of the simulated devices if they were requested; else the reason of the first backend that
// knows the kind, followed by the names and reasons of the others.
Availability why_none(Backends backends, DeviceType kind, CheckOf check);

}  // namespace naru::runtime
