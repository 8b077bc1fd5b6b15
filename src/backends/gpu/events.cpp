#include "backends/gpu/events.h"

#include <new>

#include "backends/gpu/device.h"

namespace naru::backends::gpu {

Events::~Events() {
  if (device_.forked() || device_.lost() || (spare_[0].empty() && spare_[1].empty())) return;
  const GpuDevice::Current scope(device_, std::nothrow);
  if (!scope) return;
  for (const auto& list : spare_)
    for (EventHandle e : list) device_.driver().event_destroy(e);
}

EventHandle Events::take(Kind kind) {
  {
    const std::lock_guard lock(mutex_);
    auto& list = spare_[static_cast<size_t>(kind)];
    if (!list.empty()) {
      EventHandle const event = list.back();
      list.pop_back();
      return event;
    }
  }
  EventHandle made = nullptr;
  device_.call(device_.driver().event_create, &made, kind == Kind::Time ? kTimingEvent : kOrderEvent);
  return made;
}

void Events::give_back(EventHandle event, Kind kind) noexcept {
  // In a forked child, another thread of the parent may have held the lock; a lost device's events are useless.
  if (device_.forked() || device_.lost()) return;
  try {
    const std::lock_guard lock(mutex_);
    spare_[static_cast<size_t>(kind)].push_back(event);
  } catch (const std::bad_alloc&) {
    if (const GpuDevice::Current scope(device_, std::nothrow); scope) device_.driver().event_destroy(event);
  }
}

std::shared_ptr<const void> Events::record(StreamHandle stream, Kind kind) {
  const GpuDevice::Current scope(device_);
  EventHandle const event = take(kind);
  std::shared_ptr<const void> held(event, [this, kind](const void* e) { give_back(static_cast<EventHandle>(const_cast<void*>(e)), kind); });
  device_.call(device_.driver().event_record, event, stream);
  return held;
}

}  // namespace naru::backends::gpu
