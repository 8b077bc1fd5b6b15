// The steps that the sweeps interrupt: one for each kind of work in programs.
#pragma once

#include <functional>
#include <vector>

#include "naru/device.h"

namespace naru::faults {

// All values that a step has computed, read by the host.
using Values = std::vector<std::vector<double>>;
// Runs the step, from the same state each time.
using Once = std::function<Values()>;

struct Step {
  const char* name;
  // Makes the state that persists between runs (a model, a graph, a kernel) on the device.
  Once (*make)(Device device);
};
// The step new_programs uses different kernels for each variant, with the same values for all.
inline uint64_t variant = 0;
const std::vector<Step>& steps();
const Step& step(const char* name);

}  // namespace naru::faults
