// Where the host waits for a device: counted, forbidden or warned about, by thread.
#pragma once

#include <cstdint>

#include "naru/device.h"
#include "naru/sync.h"

namespace naru::runtime {

// Called wherever the host is about to wait. Throws SynchronizationError where that is forbidden.
void note_synchronization(const char* what, Device device);

}  // namespace naru::runtime
