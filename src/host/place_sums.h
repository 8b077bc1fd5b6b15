// Sums of floating-point values that go to equal places, in blocks, in the order of ir/place_sums.h.
#pragma once

#include <cstdint>

#include "ir/instruction.h"

namespace naru::host {

// target[e] += value[e], in order. `to`: what indices add to each element's address, or null.
using AddRun = void (*)(const char* value, int64_t value_step, char* target, int64_t target_step, const int64_t* to, int64_t n);

// The additions of a Scatter whose sums are in blocks (ir::sums_in_blocks).
void add_in_blocks(const ir::Scatter& s, AddRun add);

}  // namespace naru::host
