#include "runtime/device/backend.h"

#include <algorithm>
#include <utility>

namespace naru::runtime {

void DeferredErrors::keep(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  any_.store(true, std::memory_order_release);
}

void DeferredErrors::follow(DeferredErrors& other) {
  if (&other == this) return;
  std::vector<DeferredErrors*> more;
  {
    const std::lock_guard lock(other.mutex_);
    more = other.followed_;
  }
  more.push_back(&other);
  const std::lock_guard lock(mutex_);
  for (DeferredErrors* e : more)
    if (e != this && std::find(followed_.begin(), followed_.end(), e) == followed_.end()) followed_.push_back(e);
}

std::exception_ptr DeferredErrors::take() noexcept {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_release);
  return std::exchange(error_, nullptr);
}

void DeferredErrors::forget() noexcept {
  const std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_release);
  error_ = nullptr;
  followed_.clear();
}

void DeferredErrors::raise() {
  std::exception_ptr error = take();
  if (!error) {
    std::vector<DeferredErrors*> others;
    {
      const std::lock_guard lock(mutex_);
      others = followed_;
    }
    for (DeferredErrors* e : others)
      if (!error) error = e->take();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace naru::runtime
