#include "backends/cuda/events.h"

#include <new>

#include "backends/cuda/device.h"

namespace naru::backends::cuda {

Events::~Events() {
  if (device_.forked() || device_.lost() || (spare_[0].empty() && spare_[1].empty())) return;
  const CudaDevice::Current scope(device_, std::nothrow);
  if (!scope) return;
  for (const auto& list : spare_)
    for (CUevent e : list) device_.api().cuEventDestroy_v2(e);
}

CUevent Events::take(Kind kind) {
  {
    const std::lock_guard lock(mutex_);
    auto& list = spare_[static_cast<size_t>(kind)];
    if (!list.empty()) {
      CUevent const event = list.back();
      list.pop_back();
      return event;
    }
  }
  CUevent made = nullptr;
  device_.check(device_.api().cuEventCreate(&made, kind == Kind::Time ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return made;
}

void Events::give_back(CUevent event, Kind kind) noexcept {
  // In a forked child, another thread of the parent may have held the lock; a lost device's events are useless.
  if (device_.forked() || device_.lost()) return;
  try {
    const std::lock_guard lock(mutex_);
    spare_[static_cast<size_t>(kind)].push_back(event);
  } catch (const std::bad_alloc&) {
    if (const CudaDevice::Current scope(device_, std::nothrow); scope) device_.api().cuEventDestroy_v2(event);
  }
}

std::shared_ptr<const void> Events::record(CUstream stream, Kind kind) {
  const CudaDevice::Current scope(device_);
  CUevent const event = take(kind);
  std::shared_ptr<const void> held(event, [this, kind](const void* e) { give_back(static_cast<CUevent>(const_cast<void*>(e)), kind); });
  device_.check(device_.api().cuEventRecord(event, stream), "cuEventRecord");
  return held;
}

}  // namespace naru::backends::cuda
