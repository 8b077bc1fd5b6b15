#include "naru/dtype.h"

#include <atomic>
#include <bit>
#include <utility>

#include "naru/error.h"

namespace naru {
namespace {

constexpr std::string_view kNames[kDTypes] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                              "int64", "float16", "bfloat16", "float32", "float64"};
constexpr std::pair<std::string_view, DType> kAliases[] = {{"half", DType::F16},  {"float", DType::F32}, {"double", DType::F64},
                                                           {"short", DType::I16}, {"int", DType::I32},   {"long", DType::I64}};
std::atomic<DType> default_type{DType::F32};

}  // namespace

std::string_view name_of(DType t) noexcept { return kNames[static_cast<int>(t)]; }

DType parse_dtype(std::string_view name) {
  std::string_view word = name;
  if (word.starts_with("torch.")) word.remove_prefix(6);
  for (int i = 0; i < kDTypes; ++i)
    if (kNames[i] == word) return static_cast<DType>(i);
  for (const auto& [alias, type] : kAliases)
    if (alias == word) return type;
  throw TypeError("unknown dtype '{}'; the types are bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64", name);
}

DType promote(DType a, DType b) noexcept {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  // Now a comes first in the order bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, and the later one holds
  // the earlier, but for two pairs.
  if (a == DType::U8 && b == DType::I8) return DType::I16;
  if (a == DType::F16 && b == DType::BF16) return DType::F32;
  return b;
}

DType default_dtype() noexcept { return default_type.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  if (!is_floating(t)) throw TypeError("only floating-point types are supported as the default type, got {}", name_of(t));
  default_type.store(t, std::memory_order_relaxed);
}

float half_to_float(uint16_t h) noexcept {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  // A NaN keeps its upper bits and becomes quiet, as the processors' own conversion does.
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 makes the adder round to multiples of 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

float bfloat_to_float(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // quiet NaN, sign kept
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace naru
