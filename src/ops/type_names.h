// The names PyTorch's error messages give to element types.
#pragma once

#include "naru/dtype.h"

namespace naru::ops {

// "Float", "Long" ...
constexpr const char* torch_name(DType t) noexcept {
  constexpr const char* kNames[kDTypes] = {"Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double"};
  return kNames[static_cast<int>(t)];
}
// "float", "long" ...: the C++ type.
constexpr const char* c_name(DType t) noexcept {
  constexpr const char* kNames[kDTypes] = {"bool", "unsigned char", "signed char",   "short", "int",
                                           "long", "c10::Half",     "c10::BFloat16", "float", "double"};
  return kNames[static_cast<int>(t)];
}

}  // namespace naru::ops
