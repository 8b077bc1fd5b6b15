// Half and BFloat16: one element of float16 or bfloat16 on the host. Arithmetic is that of float; storing a result rounds to nearest even.
#pragma once

#include <cstdint>
#include <limits>

#include "naru/dtype.h"

namespace naru {

namespace detail {

template <DType Type>
class HalfOf {
 public:
  static constexpr DType kElementType = Type;

  HalfOf() = default;
  HalfOf(float v) noexcept : bits_(Type == DType::F16 ? float_to_half(v) : float_to_bfloat(v)) {}
  operator float() const noexcept { return Type == DType::F16 ? half_to_float(bits_) : bfloat_to_float(bits_); }
  static constexpr HalfOf from_bits(uint16_t bits) noexcept {
    HalfOf made;
    made.bits_ = bits;
    return made;
  }
  constexpr uint16_t bits() const noexcept { return bits_; }
  template <class T>
  HalfOf& operator+=(T v) noexcept {
    return *this = HalfOf(static_cast<float>(*this) + static_cast<float>(v));
  }
  template <class T>
  HalfOf& operator-=(T v) noexcept {
    return *this = HalfOf(static_cast<float>(*this) - static_cast<float>(v));
  }
  template <class T>
  HalfOf& operator*=(T v) noexcept {
    return *this = HalfOf(static_cast<float>(*this) * static_cast<float>(v));
  }
  template <class T>
  HalfOf& operator/=(T v) noexcept {
    return *this = HalfOf(static_cast<float>(*this) / static_cast<float>(v));
  }

 private:
  uint16_t bits_ = 0;
};

}  // namespace detail

using Half = detail::HalfOf<DType::F16>;
using BFloat16 = detail::HalfOf<DType::BF16>;

template <class T>
concept HalfNumber = requires {
  T::kElementType;
};

}  // namespace naru

template <>
struct std::numeric_limits<naru::Half> : std::numeric_limits<float> {
  static constexpr int digits = 11;
  static constexpr naru::Half lowest() noexcept { return naru::Half::from_bits(0xfbff); }
  static constexpr naru::Half max() noexcept { return naru::Half::from_bits(0x7bff); }
  static constexpr naru::Half min() noexcept { return naru::Half::from_bits(0x0400); }
  static constexpr naru::Half epsilon() noexcept { return naru::Half::from_bits(0x1400); }
  static constexpr naru::Half infinity() noexcept { return naru::Half::from_bits(0x7c00); }
  static constexpr naru::Half quiet_NaN() noexcept { return naru::Half::from_bits(0x7e00); }
};
template <>
struct std::numeric_limits<naru::BFloat16> : std::numeric_limits<float> {
  static constexpr int digits = 8;
  static constexpr naru::BFloat16 lowest() noexcept { return naru::BFloat16::from_bits(0xff7f); }
  static constexpr naru::BFloat16 max() noexcept { return naru::BFloat16::from_bits(0x7f7f); }
  static constexpr naru::BFloat16 min() noexcept { return naru::BFloat16::from_bits(0x0080); }
  static constexpr naru::BFloat16 epsilon() noexcept { return naru::BFloat16::from_bits(0x3c00); }
  static constexpr naru::BFloat16 infinity() noexcept { return naru::BFloat16::from_bits(0x7f80); }
  static constexpr naru::BFloat16 quiet_NaN() noexcept { return naru::BFloat16::from_bits(0x7fc0); }
};
