// Element types of matrix products and convolutions: dispatch, and arithmetic that is the same for all of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "naru/dtype.h"

namespace naru::cpu {

// Integers wrap around.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}

// Calls typed(T()) for types that products are computed in, wider(W) for types that are computed in a wider one. Returns false for Bool,
// which has no products.
template <class Typed, class Wider>
bool in_product_type(DType type, Typed typed, Wider wider) {
  switch (type) {
    case DType::F32:
      return typed(float()), true;
    case DType::F64:
      return typed(double()), true;
    case DType::I32:
      return typed(int32_t()), true;
    case DType::I64:
      return typed(int64_t()), true;
    case DType::F16:
    case DType::BF16:
      return wider(DType::F32), true;
    case DType::U8:
    case DType::I8:
    case DType::I16:
      return wider(DType::I32), true;
    case DType::Bool:
      break;
  }
  return false;
}

}  // namespace naru::cpu
