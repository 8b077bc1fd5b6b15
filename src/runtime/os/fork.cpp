#include "runtime/os/fork.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/os/system.h"

namespace naru::runtime {
namespace {

struct Held {
  std::mutex mutex;  // guards the list
  std::vector<std::mutex*> mutexes;
};
Held& held() {
  static auto* const h = [] {
    auto* made = new Held;
    system::at_fork(
        [] {
          held().mutex.lock();
          for (std::mutex* m : held().mutexes) m->lock();
        },
        [] {
          for (std::mutex* m : held().mutexes) m->unlock();
          held().mutex.unlock();
        },
        [] {
          for (std::mutex* m : held().mutexes) m->unlock();
          held().mutex.unlock();
        });
    return made;
  }();
  return *h;
}

}  // namespace

void hold_at_fork(std::mutex& mutex) {
  Held& h = held();
  const std::lock_guard lock(h.mutex);
  h.mutexes.push_back(&mutex);
}

void forget_at_fork(std::mutex& mutex) {
  Held& h = held();
  const std::lock_guard lock(h.mutex);
  std::erase(h.mutexes, &mutex);
}

int fork_generation() noexcept {
  static std::atomic<int> forks{0};
  static const bool registered = system::at_fork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return registered ? forks.load(std::memory_order_relaxed) : system::process_id();
}

}  // namespace naru::runtime
