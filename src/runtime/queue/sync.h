// Host synchronization with devices: counted, forbidden or warned about, per thread.
#pragma once

#include <cstdint>

#include "naru/device.h"
#include "naru/device/sync.h"

namespace naru::runtime {

// Called wherever the host is about to wait. Throws SynchronizationError if that is forbidden.
void note_synchronization(const char* what, Device device);

}  // namespace naru::runtime
