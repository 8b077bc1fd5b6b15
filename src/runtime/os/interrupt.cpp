#include "runtime/os/interrupt.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "naru/condition_variable.h"
#include "runtime/os/fork.h"

namespace naru::runtime {
namespace {

// A helper thread that blocks on behalf of the main thread. It ends after a while without work, or when its wait ends after the main thread
// has given up.
class Waiter {
 public:
  static std::shared_ptr<Waiter> make() {
    auto made = std::make_shared<Waiter>();
    std::thread([made] { made->work(); }).detach();
    return made;
  }
  // Returns false if its thread has ended.
  bool begin(std::function<void()>& wait) {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    wait_ = std::move(wait);
    asked_.notify_one();
    return true;
  }
  bool done_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, time, [&] { return !wait_; });
  }
  void leave_alone() {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (asked_.wait_for(lock, kPatience, [&] { return static_cast<bool>(wait_); })) {
      lock.unlock();
      wait_();
      lock.lock();
      wait_ = nullptr;
      done_.notify_one();
      if (over_) return;
    }
    over_ = true;
  }

  static constexpr std::chrono::milliseconds kPatience{500};
  std::mutex mutex_;
  ConditionVariable asked_, done_;
  std::function<void()> wait_;
  bool over_ = false;
};

}  // namespace

bool wait_or_interrupt(const InterruptWatch& watch, std::function<void()> wait) {
  if (!watch.active()) {
    wait();
    return true;
  }
  // Used only by the main thread of this process, because a forked child does not have the thread. Never destroyed.
  static auto& waiter = *new std::shared_ptr<Waiter>;
  static int process = -1;
  if (std::exchange(process, fork_generation()) != fork_generation() && waiter) new std::shared_ptr<Waiter>(std::move(waiter));
  while (!waiter || !waiter->begin(wait)) waiter = Waiter::make();
  while (!waiter->done_within(std::chrono::milliseconds(kInterruptMilliseconds))) {
    if (!watch.interrupted()) continue;
    waiter->leave_alone();
    waiter.reset();
    return false;
  }
  return true;
}

}  // namespace naru::runtime
