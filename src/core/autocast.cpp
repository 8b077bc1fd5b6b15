#include "core/autocast.h"

namespace naru::autocast {

std::atomic<int> blocks{0};

State& state() noexcept {
  static thread_local State of_thread;
  return of_thread;
}

void set_on(DeviceType kind, bool on) noexcept {
  bool& slot = state().on[static_cast<size_t>(kind)];
  blocks.fetch_add(int{on} - int{slot}, std::memory_order_relaxed);
  slot = on;
}

}  // namespace naru::autocast
