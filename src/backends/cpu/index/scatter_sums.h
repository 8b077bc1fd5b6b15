// Sums of floating-point values scattered to equal indices, added in blocks in the order of ir/scatter_sums.h.
#pragma once

#include <cstdint>

#include "ir/instruction.h"

namespace naru::cpu {

// target[e] += value[e], in order. `to`: byte offsets that the indices add to each element's address, or null.
using AddRun = void (*)(const char* value, int64_t value_step, char* target, int64_t target_step, const int64_t* to, int64_t n);

// Runs the additions of a Scatter that must be summed in blocks (ir::sums_in_blocks).
void add_in_blocks(const ir::Scatter& s, AddRun add);

}  // namespace naru::cpu
