// A pool of a device's events: creating and destroying an event costs more than recording one.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/api.h"

namespace naru::backends::cuda {

class CudaDevice;

// Thread-safe. An event may be recorded again once there is no handle of it: device waits that were submitted before keep referring to the
// earlier record.
class Events {
 public:
  enum class Kind : uint8_t { Order, Time };  // timing events need other creation flags

  explicit Events(const CudaDevice& device) : device_(device) {}
  ~Events();
  Events(const Events&) = delete;

  // Records an event after all work submitted to the stream, which must belong to the device. The last copy of the handle returns the event
  // to the pool.
  std::shared_ptr<const void> record(CUstream stream, Kind kind);
  static CUevent of(const std::shared_ptr<const void>& event) noexcept { return static_cast<CUevent>(const_cast<void*>(event.get())); }

 private:
  CUevent take(Kind kind);
  void give_back(CUevent event, Kind kind) noexcept;

  const CudaDevice& device_;
  std::mutex mutex_;
  std::array<std::vector<CUevent>, 2> spare_;  // by kind
};

}  // namespace naru::backends::cuda
