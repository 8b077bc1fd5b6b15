// LibraryCall: held while another library's code runs. When the process ends, such libraries free their tables and the machine code that they
// have made, while streams' and daemon threads may still compute with them.
#pragma once

#include <atomic>

#include "core/ref.h"

namespace naru::host {

// In a process that is ending, no call begins, and exit waits for those under way before the library's own destructors run: at the end of the main
// thread, whose thread-local objects go before all that is static; and, where another thread ends the process, behind each function's first call.
class LibraryCall {
 public:
  struct OrNone {};
  // For what can be done without the library as well: false in a process that is ending. (Whoever runs at its end may wait for another thread, so
  // nobody may rest.)
  LibraryCall(std::atomic<bool>& known, OrNone) noexcept : known_(known) {
    count(1);
    if (closing_.load()) [[unlikely]]
      count(-1), begun_ = false;
  }
  explicit operator bool() const noexcept { return begun_; }
  static bool process_ends() noexcept { return closing_.load(std::memory_order_relaxed); }
  // For all else: the thread rests until the process is gone. The thread that ends the process may still call, and may be in a call.
  // `known`: of the function that is called, false at first. What it makes at its first call is destroyed before what was registered earlier, so
  // exit's handler is registered behind that call.
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
  static inline constinit std::atomic<bool> closing_{false};  // the main thread has ended: the process will, unless others go on without it
  static inline constinit std::atomic<bool> ending_{false};
  static inline constinit thread_local int of_this_thread_ =
      0;  // a library may end the process itself: OpenBLAS does, where no memory is left
  std::atomic<bool>& known_;
  bool begun_ = true;
};

}  // namespace naru::host
