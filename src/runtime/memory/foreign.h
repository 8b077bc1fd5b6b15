// Interoperability with other libraries that use a device's memory on streams that naru does not know.
#pragma once

#include <cstdint>
#include <span>

#include "core/pending_uses.h"
#include "naru/device.h"

namespace naru::runtime {

// Implemented by a backend whose devices are shared with other libraries (Backend::shared_name).
class ForeignStreams {
 public:
  virtual ~ForeignStreams() = default;
  // The driver's handle of a naru stream: work that others submit to it is in order with naru's work there.
  virtual uint64_t handle_of(DeviceStream& stream) = 0;
  // A point that is reached when the driver's stream `handle` has done all work submitted so far and all points of `before` are reached.
  // Its stream is null if that is so already.
  virtual StreamPoint behind(Device device, uint64_t handle, std::span<const StreamPoint> before) = 0;
};
// Null if other libraries can't use the devices' memory.
ForeignStreams* foreign_streams(DeviceType kind);

// Flushes a device's stream (with index) and returns the driver's handle of it; 0 if other libraries can't use the device.
uint64_t handle_for_others(Device device, int stream);

// Notes that another library knows an address in the device's memory: from now on, synchronizing the device includes other libraries' work.
void note_address_given(Device device) noexcept;
bool is_address_given(Device device) noexcept;

}  // namespace naru::runtime
