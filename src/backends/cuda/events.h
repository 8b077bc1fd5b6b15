// Events of a device's context, used again and again: making one and destroying it costs more than recording it.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/api.h"

namespace naru::backends::cuda {

class CudaDevice;

// Thread-safe. An event may be recorded again once no handle holds it: waits of the device that were submitted by then keep to the earlier record.
class Events {
 public:
  enum class Kind : uint8_t { Order, Time };  // those that take the time are made otherwise

  explicit Events(const CudaDevice& device) : device_(device) {}
  ~Events();
  Events(const Events&) = delete;

  // Recorded behind all that the stream was given, which is of the device. The last copy gives the event back.
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
