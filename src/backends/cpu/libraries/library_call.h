// LibraryCall: a guard held while code of another library runs. When the process exits, such libraries free their tables and generated code
// while stream threads and daemon threads may still compute with them.
#pragma once

#include <atomic>

#include "core/ref.h"

namespace naru::cpu {

// Once the process is exiting, no new call starts, and exit waits for running calls before the library's destructors run. On the main
// thread, the wait is in a thread-local destructor, which runs before static destructors. If another thread calls exit, the wait is in an
// atexit handler that is registered after each function's first call.
class LibraryCall {
 public:
  struct OrNone {};
  // For work that can also be done without the library: converts to false in a process that is exiting. (A thread must not block here: code
  // that runs at exit may wait for it.)
  LibraryCall(std::atomic<bool>& known, OrNone) noexcept : known_(known) {
    count(1);
    if (closing_.load()) [[unlikely]]
      count(-1), begun_ = false;
  }
  explicit operator bool() const noexcept { return begun_; }
  static bool process_ends() noexcept { return closing_.load(std::memory_order_relaxed); }
  // For all other work: blocks until the process is gone. The thread that ends the process may still call, and may already be in a call.
  // `known` belongs to the called function; initialise it to false. What a library creates at its first call is destroyed before what was
  // registered earlier, so the atexit handler is registered after that call.
  explicit LibraryCall(std::atomic<bool>& known) noexcept : known_(known) {
    count(1);
    if (ending_.load()) [[unlikely]]
      rest_unless_this_thread_ends_it();
  }
  LibraryCall(const LibraryCall&) = delete;
  ~LibraryCall() {
    if (!begun_) [[unlikely]]
      return;
    count(-1);
    if (!known_.load(std::memory_order_relaxed)) [[unlikely]]
      wait_at_exit(known_);
  }

 private:
  static void count(int by) noexcept {
    of_this_thread_ += by;
    if (single_threaded())
      under_way_.store(under_way_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    else
      under_way_.fetch_add(by);
  }
  static void rest_unless_this_thread_ends_it() noexcept;
  static void wait_at_exit(std::atomic<bool>& known) noexcept;
  static void await_calls();
  friend struct EndOfMainThread;

  static inline constinit std::atomic<int> under_way_{0};
  static inline constinit std::atomic<bool> closing_{false};  // the main thread has ended; the process will too, unless other threads go on
  static inline constinit std::atomic<bool> ending_{false};
  static inline constinit thread_local int of_this_thread_ =
      0;  // calls of this thread: a library may call exit itself, as OpenBLAS does when memory runs out
  std::atomic<bool>& known_;
  bool begun_ = true;
};

}  // namespace naru::cpu
