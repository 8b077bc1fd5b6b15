// Which C++ types correspond to which dtype, and range-checked conversion of scalars.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "naru/dtype.h"
#include "naru/half.h"
#include "naru/scalar.h"

namespace naru {

// True if memory of dtype `t` may be accessed as an array of T: float for float32, int64_t for int64, std::complex<float> for complex64 ...
// uint8_t also for bool; Half and BFloat16 (naru/half.h) for float16 and bfloat16, and uint16_t (the bits) for both and for uint16.
template <class T>
constexpr bool is_element_of(DType t) noexcept {
  using E = std::remove_cv_t<T>;
  if (std::is_same_v<E, bool>) return t == DType::Bool;
  if constexpr (HalfNumber<E>) return t == E::kElementType;
  if constexpr (ComplexNumber<E>) return is_complex(t) && sizeof(E) == size_of(t);
  if (std::is_same_v<E, uint16_t>) return t == DType::F16 || t == DType::BF16 || t == kUInt16;
  if (std::is_floating_point_v<E>) return is_floating(t) && sizeof(E) == size_of(t) && sizeof(E) >= 4;
  if (std::is_same_v<E, uint8_t> && t == DType::Bool) return true;
  return std::is_integral_v<E> && is_integral(t) && sizeof(E) == size_of(t) && std::is_signed_v<E> == is_signed(t);
}

template <class T>
constexpr bool has_dtype() noexcept {
  for (const DType t : kAllDTypes)
    if (is_element_of<T>(t)) return true;
  return false;
}

// The dtype whose element type is T; for uint16_t, float16.
template <class T>
constexpr DType dtype_of() noexcept {
  static_assert(has_dtype<T>(), "no dtype has elements of this type");
  if (std::is_same_v<std::remove_cv_t<T>, uint8_t>) return DType::U8;
  for (const DType t : kAllDTypes)
    if (is_element_of<T>(t)) return t;
  return DType::Bool;
}

namespace detail {
template <class T>
constexpr const char* type_name() noexcept {
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "float" : "double";
  constexpr const char* kNames[2][4] = {{"uint8_t", "uint16_t", "uint32_t", "uint64_t"}, {"int8_t", "int16_t", "int", "int64_t"}};
  return kNames[std::is_signed_v<T>][sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
}
[[noreturn]] void throw_overflow(const char* type);
[[noreturn]] void throw_wrong_element(DType is, DType wanted);
}  // namespace detail

// The scalar as a complex number.
template <ComplexNumber T>
T number_as(const Scalar& s) {
  return s.to<T>();
}
// The scalar converted to T, truncating fractions. Throws RuntimeError if T can't represent it, for instance NaN as an integer.
template <class T>
requires std::is_arithmetic_v<T> T number_as(const Scalar& s) {
  if constexpr (std::is_same_v<T, bool>) {
    return s.to_bool();
  } else if constexpr (std::is_floating_point_v<T>) {
    const double v = s.to_double();
    if constexpr (sizeof(T) < sizeof(double)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (static_cast<double>(std::numeric_limits<T>::max()) < (v < 0 ? -v : v) && v != kInfinity && v != -kInfinity)
        detail::throw_overflow(detail::type_name<T>());
    }
    return static_cast<T>(v);
  } else {
    // 2 to the number of T's digits: the smallest value that is too large.
    constexpr double kEnd = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
    constexpr double kFirst = std::is_signed_v<T> ? -kEnd : 0;
    if (s.is_float()) {
      const double v = s.to_double();
      if (!(v < kEnd && (v >= kFirst || v > kFirst - 1))) detail::throw_overflow(detail::type_name<T>());
      return static_cast<T>(v);
    }
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
      if (s.is_unsigned()) return static_cast<T>(s.to_bits());
    const int64_t v = s.to_int();
    if constexpr (sizeof(T) < 8) {
      if (v < static_cast<int64_t>(std::numeric_limits<T>::min()) || v > static_cast<int64_t>(std::numeric_limits<T>::max()))
        detail::throw_overflow(detail::type_name<T>());
    } else if constexpr (!std::is_signed_v<T>) {
      if (v < 0) detail::throw_overflow(detail::type_name<T>());
    }
    return static_cast<T>(v);
  }
}

}  // namespace naru
