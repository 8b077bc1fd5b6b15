// Operators that the cpu does in one loop, where what they are on devices would be many small instructions (ir/host_loop.h).
#pragma once

#include <array>
#include <initializer_list>

#include "ir/host_loop.h"
#include "ops/common.h"

namespace naru::ops {

// Whether a loop may take the place of what is differentiable: all of them on the cpu, of types that programs know, and no gradient is wanted.
bool takes_host_loop(std::initializer_list<const Tensor*> tensors);
// Runs it over row-major tensors that have elements, those written being results (make_result).
void run_host_loop(ir::HostLoop::Kind kind, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
                   std::array<int64_t, 3> numbers = {});

}  // namespace naru::ops
