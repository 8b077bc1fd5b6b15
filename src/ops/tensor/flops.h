// How operators report to the thread's FlopCounters.
#pragma once

#include <cstdint>
#include <utility>

#include "naru/flops.h"

namespace naru::ops {

extern thread_local constinit int flop_counters;  // counters active on this thread; 0 while an operator counts for all that it calls

void add_flops(const char* op, int64_t operations);
inline void count_flops(const char* op, int64_t operations) {
  if (flop_counters) [[unlikely]]
    add_flops(op, operations);
}

// Counts `operations` now; during its lifetime the operators that are called count nothing.
class FlopsOfAll {
 public:
  FlopsOfAll(const char* op, int64_t operations) : FlopsOfAll((count_flops(op, operations), std::exchange(flop_counters, 0))) {}
  FlopsOfAll() : FlopsOfAll(std::exchange(flop_counters, 0)) {}  // the caller has counted already
  ~FlopsOfAll() { flop_counters = before_; }
  FlopsOfAll(const FlopsOfAll&) = delete;

 private:
  explicit FlopsOfAll(int before) : before_(before) {}
  int before_;
};

}  // namespace naru::ops
