// Ctrl-C while the host waits in C++: Python's own handler only leaves a note, which nobody reads before the wait is over.
#pragma once

#include <functional>

#include "naru/error.h"

namespace naru::runtime {

// A wait that Ctrl-C ended. In Python it becomes what the program's handler raises, KeyboardInterrupt as a rule.
class Interrupted : public Error {
 public:
  explicit Interrupted(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Waits of this process's main thread are watched from now on. (Off in C++ programs, whose handlers decide for themselves.)
void watch_interrupts(bool on) noexcept;

// In its scope, on the main thread, a SIGINT is noted here besides whatever else is to happen. Elsewhere, and where SIGINT is ignored or ends
// the program, it does nothing.
class InterruptWatch {
 public:
  InterruptWatch() noexcept;
  InterruptWatch(const InterruptWatch&) = delete;
  ~InterruptWatch();
  // Whether waits in this scope can be interrupted at all.
  bool active() const noexcept { return active_; }
  bool interrupted() const noexcept;

 private:
  bool active_ = false;
};

// Calls `wait`, which blocks in a driver's function that hears of no signal. False: Ctrl-C came first. It goes on then, on a thread of its own, and so owns
// all that it uses; it throws nothing.
bool wait_or_interrupt(const InterruptWatch& watch, std::function<void()> wait);

// Between looks.
inline constexpr int kInterruptMilliseconds = 50;

}  // namespace naru::runtime
