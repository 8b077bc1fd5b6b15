// AskedOnce: a value that is found out at the first question, such as what a driver says of its devices.
#pragma once

#include <atomic>
#include <memory>

namespace naru::runtime {

// Thread-safe without a lock, because a forked child could inherit it locked: if two threads ask at once, both find out, and one answer is
// kept. The value is never freed here, because other threads may be reading it.
template <class T>
class AskedOnce {
 public:
  template <class Ask>
  const T& get(const Ask& ask) {
    if (const T* known = value_.load(std::memory_order_acquire)) return *known;
    auto made = std::make_unique<const T>(ask());
    const T* none = nullptr;
    if (value_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *none;
  }
  // The value, which then is the caller's; null if it was not asked for. The next question is the first again.
  const T* take() noexcept { return value_.exchange(nullptr, std::memory_order_acq_rel); }

 private:
  std::atomic<const T*> value_{nullptr};
};

}  // namespace naru::runtime
