// What other libraries of the process do with a device's memory, on streams of their own that naru knows nothing of.
#pragma once

#include <cstdint>
#include <span>

#include "core/pending_uses.h"
#include "naru/device.h"

namespace naru::runtime {

// Of a backend whose devices are shared with other libraries (Backend::shared_name).
class ForeignStreams {
 public:
  virtual ~ForeignStreams() = default;
  // The driver's own handle of a stream of naru's: what others put on it goes in order with naru's work there.
  virtual uint64_t handle_of(DeviceStream& stream) = 0;
  // A point that is reached when the driver's stream `handle` has done all that it was given so far, and all of `before` are reached; no stream where that
  // is so already.
  virtual StreamPoint behind(Device device, uint64_t handle, std::span<const StreamPoint> before) = 0;
};
// Null where other libraries can't use the devices' memory.
ForeignStreams* foreign_streams(DeviceType kind);

// The driver's handle of a device's stream (with index), behind all that was deferred there; 0 where others can't use the device.
uint64_t handle_for_others(Device device, int stream);

// Another library knows an address of the device's memory from here on: a wait for the device includes other libraries' work.
void note_address_given(Device device) noexcept;
bool is_address_given(Device device) noexcept;

}  // namespace naru::runtime
