// The names that PyTorch's error messages use for dtypes.
#pragma once

#include "naru/dtype.h"

namespace naru::ops {

// "Float", "Long" ...
constexpr const char* torch_name(DType t) noexcept { return traits_of(t).scalar_type; }
// "float", "long" ...: the C++ type.
constexpr const char* c_name(DType t) noexcept { return traits_of(t).c_type; }

}  // namespace naru::ops
