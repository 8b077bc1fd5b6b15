// Operators that the cpu does in one host loop, where other devices need many small instructions (ir/host_loop.h).
#pragma once

#include <array>
#include <initializer_list>

#include "ir/host_loop.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// True if a host loop may replace the differentiable path: all tensors are on the cpu, their dtypes are supported by programs, and no gradient is
// needed.
bool can_use_host_loop(std::initializer_list<const Tensor*> tensors);
// Runs the loop. Tensors are row-major and not empty, or undefined where a loop can do without; those in `writes` come from make_result. told: a last
// array of one bool.
void run_host_loop(ir::HostLoop::Kind kind, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
                   std::array<int64_t, 4> numbers = {}, bool* told = nullptr);

}  // namespace naru::ops
