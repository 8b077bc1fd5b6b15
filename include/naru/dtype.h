// DType: the data type of a tensor's elements, its properties, and PyTorch's promotion rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace naru {

// Do not rely on the values: no file format stores them and their order means nothing; kDTypeTraits describes each type. The enumerators
// are the types that programs (ir::Program) compute with.
enum class DType : uint8_t {
  Bool,
  U8,
  I8,
  I16,
  I32,
  I64,
  F16,
  BF16,
  F32,
  F64,
  // libtorch's names.
  Byte = U8,
  Char = I8,
  Short = I16,
  Int = I32,
  Long = I64,
  Half = F16,
  BFloat16 = BF16,
  Float = F32,
  Double = F64,
};
// Complex types are values past the enumerators, so that a switch or table over the types of programs is complete without them. Operators
// compute with the components (ops/complex/complex.h); no instruction accepts an operand of these types.
inline constexpr DType kComplex32{10}, kComplex64{11}, kComplex128{12};
// Also past the enumerators: operators compute with signed integers over the same memory, or with wider ones (ops/elementwise/unsigned.h).
inline constexpr DType kUInt16{13}, kUInt32{14}, kUInt64{15};
// Floating-point formats of one byte, for storage: operators convert them from and to float32 (ops/elementwise/float8.h).
inline constexpr DType kFloat8E4M3FN{16}, kFloat8E5M2{17}, kFloat8E4M3FNUZ{18}, kFloat8E5M2FNUZ{19}, kFloat8E8M0FNU{20};

// In order of promotion.
enum class Category : uint8_t { Bool, Integer, Floating, Complex };

struct DTypeTraits {
  std::string_view name;    // "float32"
  const char* scalar_type;  // PyTorch's ScalarType: "Float"
  const char* c_type;       // as PyTorch's messages spell it: "float", "c10::Half"
  Category category;
  bool is_signed;
  uint8_t size;       // bytes of one element
  uint8_t digits;     // value bits of an integer, without the sign; precision of a floating-point type in bits
  double greatest;    // greatest finite value of a floating-point type; 0 for the others
  DType accumulator;  // what sums are accumulated in
  DType real;         // type of the components of a complex type; otherwise the type itself
};

// One row per type, in the order of DType.
inline constexpr auto kDTypeTraits = std::to_array<DTypeTraits>({
    {"bool", "Bool", "bool", Category::Bool, false, 1, 1, 0, DType::I64, DType::Bool},
    {"uint8", "Byte", "unsigned char", Category::Integer, false, 1, 8, 0, DType::I64, DType::U8},
    {"int8", "Char", "signed char", Category::Integer, true, 1, 7, 0, DType::I64, DType::I8},
    {"int16", "Short", "short", Category::Integer, true, 2, 15, 0, DType::I64, DType::I16},
    {"int32", "Int", "int", Category::Integer, true, 4, 31, 0, DType::I64, DType::I32},
    {"int64", "Long", "long", Category::Integer, true, 8, 63, 0, DType::I64, DType::I64},
    {"float16", "Half", "c10::Half", Category::Floating, true, 2, 11, 0x1.ffcp15, DType::F32, DType::F16},
    {"bfloat16", "BFloat16", "c10::BFloat16", Category::Floating, true, 2, 8, 0x1.fep127, DType::F32, DType::BF16},
    {"float32", "Float", "float", Category::Floating, true, 4, 24, 0x1.fffffep127, DType::F32, DType::F32},
    {"float64", "Double", "double", Category::Floating, true, 8, 53, 0x1.fffffffffffffp1023, DType::F64, DType::F64},
    {"complex32", "ComplexHalf", "c10::complex<c10::Half>", Category::Complex, true, 4, 11, 0, kComplex64, DType::F16},
    {"complex64", "ComplexFloat", "c10::complex<float>", Category::Complex, true, 8, 24, 0, kComplex64, DType::F32},
    {"complex128", "ComplexDouble", "c10::complex<double>", Category::Complex, true, 16, 53, 0, kComplex128, DType::F64},
    {"uint16", "UInt16", "uint16_t", Category::Integer, false, 2, 16, 0, DType::I64, kUInt16},
    {"uint32", "UInt32", "uint32_t", Category::Integer, false, 4, 32, 0, DType::I64, kUInt32},
    {"uint64", "UInt64", "uint64_t", Category::Integer, false, 8, 64, 0, DType::I64, kUInt64},
    {"float8_e4m3fn", "Float8_e4m3fn", "c10::Float8_e4m3fn", Category::Floating, true, 1, 4, 448, DType::F32, kFloat8E4M3FN},
    {"float8_e5m2", "Float8_e5m2", "c10::Float8_e5m2", Category::Floating, true, 1, 3, 57344, DType::F32, kFloat8E5M2},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz", "c10::Float8_e4m3fnuz", Category::Floating, true, 1, 4, 240, DType::F32, kFloat8E4M3FNUZ},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz", "c10::Float8_e5m2fnuz", Category::Floating, true, 1, 3, 57344, DType::F32, kFloat8E5M2FNUZ},
    {"float8_e8m0fnu", "Float8_e8m0fnu", "c10::Float8_e8m0fnu", Category::Floating, false, 1, 1, 0x1p127, DType::F32, kFloat8E8M0FNU},
});
// The number of types that programs support, and of all types.
constexpr int kDTypes = 10, kElementTypes = static_cast<int>(kDTypeTraits.size());
// Bits that a type occupies in kernel cache keys.
constexpr int kDTypeBits = 5;
static_assert(kDTypes <= 1 << kDTypeBits);

constexpr const DTypeTraits& traits_of(DType t) noexcept { return kDTypeTraits[static_cast<size_t>(t)]; }

// A table with a value for each type of programs, in the order of DType. Does not compile with more or fewer values.
template <class T>
class PerDType {
 public:
  template <class... V>
  requires(sizeof...(V) == kDTypes) constexpr PerDType(V... values) : values_{static_cast<T>(values)...} {}
  constexpr PerDType() = default;
  constexpr const T& operator[](DType t) const noexcept { return values_[static_cast<size_t>(t)]; }
  constexpr T& operator[](DType t) noexcept { return values_[static_cast<size_t>(t)]; }

 private:
  std::array<T, kDTypes> values_{};
};
inline constexpr auto kAllDTypes = [] {
  std::array<DType, kElementTypes> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<DType>(i);
  return all;
}();

// Bytes of one element.
constexpr size_t size_of(DType t) noexcept { return traits_of(t).size; }
constexpr Category category_of(DType t) noexcept { return traits_of(t).category; }
// The type of the components; for a real type, the type itself.
constexpr DType real_of(DType t) noexcept { return traits_of(t).real; }
// The complex type with components of real type t: complex64 except for float16 and float64.
constexpr DType complex_of(DType t) noexcept {
  return category_of(t) == Category::Complex ? t : t == DType::F64 ? kComplex128 : t == DType::F16 ? kComplex32 : kComplex64;
}
constexpr bool is_floating(DType t) noexcept { return category_of(t) == Category::Floating; }
constexpr bool is_complex(DType t) noexcept { return category_of(t) == Category::Complex; }
// Floating or complex: types that round and that have gradients.
constexpr bool is_inexact(DType t) noexcept { return category_of(t) >= Category::Floating; }
constexpr bool is_integral(DType t) noexcept { return category_of(t) == Category::Integer; }  // excludes bool
constexpr bool is_signed(DType t) noexcept { return traits_of(t).is_signed; }
// True if instructions accept operands of this type.
constexpr bool in_programs(DType t) noexcept { return static_cast<int>(t) < kDTypes; }
// uint16, uint32 and uint64.
constexpr bool is_wide_unsigned(DType t) noexcept { return t >= kUInt16 && t <= kUInt64; }
// The floating-point types of one byte.
constexpr bool is_float8(DType t) noexcept { return t >= kFloat8E4M3FN; }
// The place of such a type among them: 0 for float8_e4m3fn.
constexpr size_t float8_number(DType t) noexcept { return static_cast<size_t>(t) - static_cast<size_t>(kFloat8E4M3FN); }
// The type of programs that has the size of the real type t: instructions that copy elements see it in t's place. Otherwise t itself.
constexpr DType storage_type(DType t) noexcept {
  return t == kUInt16 ? DType::I16 : t == kUInt32 ? DType::I32 : t == kUInt64 ? DType::I64 : is_float8(t) ? DType::U8 : t;
}
constexpr bool has_storage_type(DType t) noexcept { return storage_type(t) != t; }

std::string_view name_of(DType t) noexcept;  // "float32"
// PyTorch's other names: "half", "float", "long" ...
inline constexpr std::pair<const char*, DType> kDTypeAliases[] = {{"half", DType::F16},  {"float", DType::F32},  {"double", DType::F64},
                                                                  {"short", DType::I16}, {"int", DType::I32},    {"long", DType::I64},
                                                                  {"chalf", kComplex32}, {"cfloat", kComplex64}, {"cdouble", kComplex128}};
// Parses a dtype's name ("float32", "torch.float32", "float", "long" ...). Throws TypeError for any other word.
DType parse_dtype(std::string_view name);

// torch.promote_types: the type of the higher category; within a category, the smallest type that represents all values of both, if there
// is one. Throws RuntimeError for uint16, uint32 or uint64 with any type but itself and floating-point types, and for float8 types with any type
// but themselves.
DType promote(DType a, DType b);

// The dtype of floating-point results of integer inputs, and of Python floats: float32 unless set.
DType default_dtype() noexcept;
// Throws TypeError unless `t` is a floating-point type.
void set_default_dtype(DType t);

// 16-bit floats on the host: their bits, and conversions that round to nearest even.
float half_to_float(uint16_t bits) noexcept;
uint16_t float_to_half(float value) noexcept;
float bfloat_to_float(uint16_t bits) noexcept;
uint16_t float_to_bfloat(float value) noexcept;

}  // namespace naru
