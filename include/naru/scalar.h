// Scalar: one number from the host with its category (bool, integer, floating), as it takes part in promotion.
// Complex numbers are to be a Kind of their own: the real part where a float is, the imaginary part behind it (24 bytes then). Programs never
// see one: as a parameter it is two, one for each component (ir/program.h).
#pragma once

#include <concepts>
#include <cstdint>

#include "naru/dtype.h"

namespace naru {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float };

  constexpr Scalar() : Scalar(0) {}
  constexpr Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  template <std::integral T>
  constexpr Scalar(T v) : kind_(Kind::Int), int_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  constexpr Scalar(T v) : kind_(Kind::Float), float_(static_cast<double>(v)) {}

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr bool is_float() const noexcept { return kind_ == Kind::Float; }
  constexpr bool is_bool() const noexcept { return kind_ == Kind::Bool; }
  constexpr double to_double() const noexcept { return is_float() ? float_ : static_cast<double>(int_); }
  constexpr int64_t to_int() const noexcept { return is_float() ? static_cast<int64_t>(float_) : int_; }
  constexpr bool to_bool() const noexcept { return is_float() ? float_ != 0 : int_ != 0; }
  // The type a tensor made of this number alone has: bool, int64, or the default floating type.
  DType dtype() const noexcept { return is_float() ? default_dtype() : is_bool() ? DType::Bool : DType::I64; }

 private:
  Kind kind_;
  union {
    int64_t int_;
    double float_;
  };
};

}  // namespace naru
