// Settings of the host executor for the length of a test.
#pragma once

#include "host/execute.h"
#include "host/thread_pool.h"

namespace naru::testing {

class Threads {
 public:
  explicit Threads(int n) : before_(host::num_threads()) { host::set_num_threads(n); }
  Threads(const Threads&) = delete;
  ~Threads() { host::set_num_threads(before_); }

 private:
  int before_;
};

// Machine code off, and on again.
class Interpreted {
 public:
  Interpreted() : before_(host::set_jit(false)) {}
  Interpreted(const Interpreted&) = delete;
  ~Interpreted() { host::set_jit(before_); }

 private:
  bool before_;
};

}  // namespace naru::testing
