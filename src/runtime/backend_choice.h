// Which of several backends serves a kind of device: the first, in their order of preference (src/backends/CMakeLists.txt), that has devices of it
// whose kernels give the right bits.
#pragma once

#include <memory>
#include <span>

#include "runtime/backend.h"

namespace naru::runtime {

using Backends = std::span<const std::unique_ptr<Backend>>;
// What Backend::self_check says of a backend, by its number in the list.
using CheckOf = const Availability& (*)(size_t backend, DeviceType kind);

// The number of the backend in the list; -1: none. simulated: only those count that simulate devices.
int choose_backend(Backends backends, DeviceType kind, bool simulated, CheckOf check);
// Why there is none: what simulated devices say that were asked for; else what the first that knows the kind says, and behind it, by their names, what the others say.
Availability why_none(Backends backends, DeviceType kind, CheckOf check);

}  // namespace naru::runtime
