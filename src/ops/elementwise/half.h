// The 16-bit types. Compositions of several operators compute them in float32 and round once.
#pragma once

#include "naru/dtype.h"

namespace naru::ops {

constexpr bool is_half(DType t) noexcept { return t == DType::F16 || t == DType::BF16; }

}  // namespace naru::ops
