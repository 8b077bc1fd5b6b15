#include "naru/dtype.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>

#include "naru/error.h"

namespace naru {
namespace {

std::atomic<DType> default_type{DType::F32};

// The smallest dtype of a category with at least `digits` digits and the given signedness.
constexpr DType smallest(Category category, bool is_signed, int digits) {
  DType found = DType::Bool;
  for (const DType t : kAllDTypes) {
    const DTypeTraits& r = traits_of(t);
    if (r.category != category || r.is_signed != is_signed || r.digits < digits) continue;
    if (found == DType::Bool || r.size < size_of(found)) found = t;
  }
  return found;
}

constexpr DType promoted(DType a, DType b) {
  const DTypeTraits &x = traits_of(a), &y = traits_of(b);
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return complex_of(promoted(x.real, y.real));
  if (x.category != y.category) return x.category > y.category ? a : b;
  if (x.is_signed != y.is_signed) return smallest(x.category, true, std::max(x.digits, y.digits));
  if (x.size != y.size) return x.size > y.size ? a : b;
  // float16 and bfloat16: neither covers both the range and the precision of the other.
  return smallest(x.category, true, std::max(x.digits, y.digits) + 1);
}

constexpr auto kPromoted = [] {
  std::array<std::array<DType, kElementTypes>, kElementTypes> table{};
  for (const DType a : kAllDTypes)
    for (const DType b : kAllDTypes) table[static_cast<size_t>(a)][static_cast<size_t>(b)] = promoted(a, b);
  return table;
}();

}  // namespace

std::string_view name_of(DType t) noexcept { return traits_of(t).name; }

DType parse_dtype(std::string_view name) {
  std::string_view word = name;
  if (word.starts_with("torch.")) word.remove_prefix(6);
  for (const DType t : kAllDTypes)
    if (name_of(t) == word) return t;
  for (const auto& [alias, type] : kDTypeAliases)
    if (alias == word) return type;
  std::string names;
  for (const DType t : kAllDTypes) names.append(names.empty() ? "" : ", ").append(name_of(t));
  throw TypeError("unknown dtype '{}'; the types are {}", name, names);
}

DType promote(DType a, DType b) {
  if ((is_float8(a) || is_float8(b)) && a != b) [[unlikely]]
    throw RuntimeError("Promotion for Float8 Types is not supported, attempted to promote {} and {} (convert with to() first)",
                       traits_of(a).scalar_type, traits_of(b).scalar_type);
  if ((is_wide_unsigned(a) || is_wide_unsigned(b)) && a != b && !is_floating(a) && !is_floating(b)) [[unlikely]]
    throw RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} and {}",
                       traits_of(a).scalar_type, traits_of(b).scalar_type);
  return kPromoted[static_cast<size_t>(a)][static_cast<size_t>(b)];
}

DType default_dtype() noexcept { return default_type.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  if (!is_floating(t) || is_float8(t))
    throw TypeError("only floating-point types are supported as the default type, got {}; float8 types are for storage", name_of(t));
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
  // A NaN keeps its upper bits and becomes quiet, as in the processors' own conversion.
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 makes the FPU round to multiples of 2^-24.
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
