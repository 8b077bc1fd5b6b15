// Scalar: one number on the host with its category (bool, integer, floating, complex), which is what counts in promotion. Programs never
// see a complex scalar: it is passed as two parameters, one for each component (ops/complex/complex.h).
#pragma once

#include <concepts>
#include <cstdint>

#include "naru/dtype.h"
#include "naru/half.h"

namespace naru {

// std::complex of any component type, recognized by its members. Not by including <complex>: that brings in streams and locales, and costs
// more than all of naru's headers.
template <class C>
concept ComplexNumber = std::floating_point<typename C::value_type> && sizeof(C) == 2 * sizeof(typename C::value_type) &&
                        requires(const C c, typename C::value_type part) {
  { c.real() } -> std::convertible_to<typename C::value_type>;
  { c.imag() } -> std::convertible_to<typename C::value_type>;
  C(part, part);
};

class Scalar {
 public:
  // Unsigned: an integer too large for int64_t.
  enum class Kind : uint8_t { Bool, Int, Float, Complex, Unsigned };

  constexpr Scalar() : Scalar(0) {}
  constexpr Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  template <class T>
  Scalar(T*) = delete;  // no implicit bool from text: full({2}, "float32")
  template <std::integral T>
  constexpr Scalar(T v) : kind_(Kind::Int), int_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  constexpr Scalar(T v) : kind_(Kind::Float), float_(static_cast<double>(v)) {}
  template <HalfNumber H>
  Scalar(H v) : Scalar(static_cast<float>(v)) {}
  template <ComplexNumber C>
  constexpr Scalar(const C& v) : kind_(Kind::Complex), float_(static_cast<double>(v.real())), imag_(static_cast<double>(v.imag())) {}

  // The value of a uint64 element. The constructors store any other unsigned value as the bits of an int64_t.
  static constexpr Scalar of_unsigned(uint64_t v) {
    Scalar s(static_cast<int64_t>(v));
    if (v >> 63) s.kind_ = Kind::Unsigned;
    return s;
  }

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr bool is_float() const noexcept { return kind_ == Kind::Float; }
  constexpr bool is_bool() const noexcept { return kind_ == Kind::Bool; }
  constexpr bool is_complex() const noexcept { return kind_ == Kind::Complex; }
  constexpr bool is_unsigned() const noexcept { return kind_ == Kind::Unsigned; }
  // The value as a real number. Throws RuntimeError if the imaginary part is not 0.
  constexpr double to_double() const {
    if (is_float()) return float_;
    return is_complex() ? without_imaginary("double") : integer_as_double();
  }
  // Throws RuntimeError if the integer doesn't fit.
  constexpr int64_t to_int() const {
    if (is_float()) return static_cast<int64_t>(float_);
    if (kind_ > Kind::Float) return is_complex() ? static_cast<int64_t>(without_imaginary("int64_t")) : too_great();
    return int_;
  }
  // The same modulo 2 to the 64.
  constexpr uint64_t to_bits() const { return static_cast<uint64_t>(is_unsigned() ? int_ : to_int()); }
  constexpr bool to_bool() const noexcept { return is_complex() ? float_ != 0 || imag_ != 0 : is_float() ? float_ != 0 : int_ != 0; }
  // The components; s.to<std::complex<double>>() returns both.
  constexpr double real() const noexcept { return is_float() || is_complex() ? float_ : integer_as_double(); }
  constexpr double imag() const noexcept { return imag_; }
  constexpr bool equals(double v) const noexcept { return real() == v && imag() == 0; }
  template <ComplexNumber C>
  constexpr C to() const noexcept {
    using Part = typename C::value_type;
    return C(static_cast<Part>(real()), static_cast<Part>(imag()));
  }
  // libtorch's names.
  double toDouble() const { return to_double(); }
  float toFloat() const { return static_cast<float>(to_double()); }
  int64_t toLong() const { return to_int(); }
  int toInt() const { return static_cast<int>(to_int()); }
  bool toBool() const noexcept { return to_bool(); }
  bool isFloatingPoint() const noexcept { return is_float(); }
  bool isBoolean() const noexcept { return is_bool(); }
  bool isIntegral(bool with_bool) const noexcept { return kind_ == Kind::Int || is_unsigned() || (with_bool && is_bool()); }
  // The value as a C++ number, without range checks: an AT_DISPATCH's scalar_t.
  template <class T>
  T to() const {
    if constexpr (HalfNumber<T>)
      return T(static_cast<float>(to_double()));
    else if constexpr (std::same_as<T, bool>)
      return to_bool();
    else if constexpr (std::floating_point<T>)
      return static_cast<T>(to_double());
    else
      return static_cast<T>(to_int());
  }
  // The dtype of a tensor made from this scalar: bool, int64, the default floating-point dtype, or the complex dtype of that.
  DType dtype() const noexcept {
    return is_float() ? default_dtype() : is_complex() ? complex_of(default_dtype()) : is_bool() ? DType::Bool : DType::I64;
  }

 private:
  double without_imaginary(const char* type) const;
  [[noreturn]] int64_t too_great() const;
  constexpr double integer_as_double() const noexcept {
    return is_unsigned() ? static_cast<double>(static_cast<uint64_t>(int_)) : static_cast<double>(int_);
  }

  Kind kind_;
  union {
    int64_t int_;
    double float_;  // the real part, if complex
  };
  double imag_ = 0;
};

}  // namespace naru
