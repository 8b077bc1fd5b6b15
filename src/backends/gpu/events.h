// A pool of a device's events: creating and destroying an event costs more than recording one.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/gpu/driver.h"

namespace naru::backends::gpu {

class GpuDevice;

// Thread-safe. An event may be recorded again once there is no handle of it: device waits that were submitted before keep referring to the
// earlier record.
class Events {
 public:
  enum class Kind : uint8_t { Order, Time };  // timing events need other creation flags

  explicit Events(const GpuDevice& device) : device_(device) {}
  ~Events();
  Events(const Events&) = delete;

  // Records an event after all work submitted to the stream, which must belong to the device. The last copy of the handle returns the event
  // to the pool.
  std::shared_ptr<const void> record(StreamHandle stream, Kind kind);
  static EventHandle of(const std::shared_ptr<const void>& event) noexcept {
    return static_cast<EventHandle>(const_cast<void*>(event.get()));
  }

 private:
  EventHandle take(Kind kind);
  void give_back(EventHandle event, Kind kind) noexcept;

  const GpuDevice& device_;
  std::mutex mutex_;
  std::array<std::vector<EventHandle>, 2> spare_;  // by kind
};

}  // namespace naru::backends::gpu
