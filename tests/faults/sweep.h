// A sweep: the n-th of something fails, for n = 1, 2, 3 ... until a step runs through without. Whatever failed: memory comes back, and the same step
// then gives the same bits.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "steps.h"

namespace naru::faults {

// A source of faults.
struct Fault {
  // From here on the n-th one fails.
  std::function<void(uint64_t n)> arm;
  // No more from here on. Whether it has failed, where the step said so much.
  std::function<bool(const std::string& said)> disarm;
};

// Waits for the devices until none has an error to tell.
void settle(Device device);
// How many there were. `last`: no more than these.
uint64_t sweep(const Step& step, Device device, const Fault& fault, std::optional<uint64_t> last = {});

}  // namespace naru::faults
