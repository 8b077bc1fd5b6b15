#include "backends/cpu/exec/helper_thread.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "naru/condition_variable.h"
#include "runtime/os/fork.h"

namespace naru::cpu {
namespace {

// A thread that sleeps between jobs. It serves one caller at a time; a forked child abandons it.
class Helper {
 public:
  Helper() : generation(runtime::fork_generation()) {
    std::thread([this] { serve(); }).detach();
  }
  const int generation;

  void run(const std::function<void()>& work, const std::function<void()>& look, int milliseconds) {
    std::unique_lock lock(mutex_);
    work_ = &work, done_ = false, error_ = nullptr;
    given_.notify_one();
    while (!finished_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return done_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      given_.wait(lock, [&] { return work_ != nullptr; });
      const auto* const work = work_;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*work)();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error, work_ = nullptr, done_ = true;
      finished_.notify_one();
    }
  }

  std::mutex mutex_;
  ConditionVariable given_, finished_;
  const std::function<void()>* work_ = nullptr;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace

void run_on_helper_thread(const std::function<void()>& work, const std::function<void()>& look, int milliseconds) {
  static thread_local Helper* helper = nullptr;  // never destroyed: its thread lives as long as the process
  if (!helper || helper->generation != runtime::fork_generation()) helper = new Helper;
  helper->run(work, look, milliseconds);
}

}  // namespace naru::cpu
