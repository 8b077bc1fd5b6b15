// Ctrl-C while the host waits in C++: Python's own handler only sets a flag, which is not checked before the wait is over.
#pragma once

#include <functional>

#include "naru/error.h"

namespace naru::runtime {

// Thrown when Ctrl-C ended a wait. In Python it becomes what the program's handler raises, usually KeyboardInterrupt.
class Interrupted : public Error {
 public:
  explicit Interrupted(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Turns watching of this process's main-thread waits on or off. (Off in C++ programs, which handle signals themselves.)
void watch_interrupts(bool on) noexcept;

// In its scope, on the main thread, SIGINT also sets a flag here, in addition to its usual handling. Does nothing on other threads, or if
// SIGINT is ignored or terminates the program.
class InterruptWatch {
 public:
  InterruptWatch() noexcept;
  InterruptWatch(const InterruptWatch&) = delete;
  ~InterruptWatch();
  // True if waits in this scope can be interrupted at all.
  bool active() const noexcept { return active_; }
  bool interrupted() const noexcept;

 private:
  bool active_ = false;
};

// Calls `wait`, which blocks in a driver function that does not react to signals. Returns false if Ctrl-C came first; `wait` then continues
// on a separate thread, so it must own all that it uses. It must not throw.
bool wait_or_interrupt(const InterruptWatch& watch, std::function<void()> wait);

// Polling interval.
inline constexpr int kInterruptMilliseconds = 50;

}  // namespace naru::runtime
