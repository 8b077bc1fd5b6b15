// A condition variable that a forked child may destroy.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace naru {

// As std::condition_variable, which a forked child must not destroy: glibc's pthread_cond_destroy waits until no thread waits any longer, and
// the threads that waited in the parent never come back in the child. The destructor is left out: it frees nothing in glibc, in Apple's C
// library and in libc++ on Windows.
class ConditionVariable {
 public:
  ConditionVariable() { std::construct_at(&variable_); }
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;
  ~ConditionVariable() {}

  void notify_one() noexcept { variable_.notify_one(); }
  void notify_all() noexcept { variable_.notify_all(); }
  template <class... Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready&&... ready) {
    variable_.wait(lock, std::forward<Ready>(ready)...);
  }
  template <class... Args>
  auto wait_for(std::unique_lock<std::mutex>& lock, Args&&... args) {
    return variable_.wait_for(lock, std::forward<Args>(args)...);
  }
  template <class... Args>
  auto wait_until(std::unique_lock<std::mutex>& lock, Args&&... args) {
    return variable_.wait_until(lock, std::forward<Args>(args)...);
  }

 private:
  union {
    std::condition_variable variable_;
  };
};

}  // namespace naru
