// Settings of the host executor for the duration of a test.
#pragma once

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/thread_pool.h"

namespace naru::testing {

class Threads {
 public:
  explicit Threads(int n) : before_(cpu::num_threads()) { cpu::set_num_threads(n); }
  Threads(const Threads&) = delete;
  ~Threads() { cpu::set_num_threads(before_); }

 private:
  int before_;
};

// Disables machine code, and enables it again.
class Interpreted {
 public:
  Interpreted() : before_(cpu::set_jit(false)) {}
  Interpreted(const Interpreted&) = delete;
  ~Interpreted() { cpu::set_jit(before_); }

 private:
  bool before_;
};

}  // namespace naru::testing
