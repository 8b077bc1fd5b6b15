// Bell: wakes a thread of this process that sleeps until something has changed.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace naru::distributed {

class Bell {
 public:
  // Differs from before once it has rung.
  uint32_t count() const noexcept { return rung_.load(std::memory_order_seq_cst); }
  void ring() noexcept {
    rung_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  // Sleeps until it has rung since count() returned `before`, for at most `time`.
  void sleep(uint32_t before, std::chrono::nanoseconds time) noexcept {
    asleep_.fetch_add(1, std::memory_order_seq_cst);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec t{seconds.count(), (time - seconds).count()};
    if (count() == before) syscall(SYS_futex, &rung_, FUTEX_WAIT_PRIVATE, before, &t, nullptr, 0);
    asleep_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  std::atomic<uint32_t> rung_{0}, asleep_{0};
};

}  // namespace naru::distributed
