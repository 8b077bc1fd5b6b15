// A sweep: the n-th occurrence of something fails, for n = 1, 2, 3 ... until a step succeeds without a failure. After each failure, all memory
// must be freed, and the same step must then give the same bits.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "steps.h"

namespace naru::faults {

// A kind of failure to inject.
struct Fault {
  // From now on, the n-th occurrence fails.
  std::function<void(uint64_t n)> arm;
  // Disarms. Returns true if an occurrence has failed, given the error text of the step.
  std::function<bool(const std::string& said)> disarm;
};

// Synchronizes the devices until none has a pending error.
void settle(Device device);
// Returns the number of failures. `last`: at most this many.
uint64_t sweep(const Step& step, Device device, const Fault& fault, std::optional<uint64_t> last = {});

}  // namespace naru::faults
