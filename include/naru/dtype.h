// DType: the element type of a tensor, its properties and PyTorch's rules of promotion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace naru {

// The values are part of no file format; complex and uint16/32/64 have room at the end.
enum class DType : uint8_t { Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64 };
constexpr int kDTypes = 10;

// Bytes of one element.
constexpr size_t size_of(DType t) noexcept {
  constexpr uint8_t kSizes[kDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(t)];
}
constexpr bool is_floating(DType t) noexcept { return t >= DType::F16; }
constexpr bool is_integral(DType t) noexcept { return t >= DType::U8 && t <= DType::I64; }  // without bool

std::string_view name_of(DType t) noexcept;  // "float32"
// The type called `name` ("float32", "torch.float32", "float", "long" ...). Throws TypeError for any other word.
DType parse_dtype(std::string_view name);

// The type that holds both (torch.promote_types).
DType promote(DType a, DType b) noexcept;

// The type of floating-point results of integer input and of Python floats: float32 unless set.
DType default_dtype() noexcept;
// Throws TypeError unless `t` is a floating-point type.
void set_default_dtype(DType t);

// 16-bit floats as the host sees them: the bits and the two conversions, rounded to nearest even.
float half_to_float(uint16_t bits) noexcept;
uint16_t float_to_half(float value) noexcept;
float bfloat_to_float(uint16_t bits) noexcept;
uint16_t float_to_bfloat(float value) noexcept;

}  // namespace naru
