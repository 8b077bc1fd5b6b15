// The work that the sweeps interrupt: small steps of every kind that programs consist of.
#pragma once

#include <functional>
#include <vector>

#include "naru/device.h"

namespace naru::faults {

// All that a step has computed, read by the host.
using Values = std::vector<std::vector<double>>;
// Does the step, from the same state each time.
using Once = std::function<Values()>;

struct Step {
  const char* name;
  // Makes what lives from step to step (a model, a graph, a kernel) on the device.
  Once (*make)(Device device);
};
// The step called new_programs has kernels of its own for each variant, and the same values for all.
inline uint64_t variant = 0;
const std::vector<Step>& steps();
const Step& step(const char* name);

}  // namespace naru::faults
