// Half precision in compositions of several operators: computed in float32, and rounded once.
#pragma once

#include "naru/dtype.h"

namespace naru::ops {

constexpr bool is_half(DType t) noexcept { return t == DType::F16 || t == DType::BF16; }

}  // namespace naru::ops
