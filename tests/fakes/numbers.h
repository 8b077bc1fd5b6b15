// Numbers of 16 bits, for the fake libraries.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

inline double from_half(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double value = exponent == 31 ? (mantissa ? NAN : INFINITY)
                       : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                      : std::ldexp(mantissa, -24);
  return h & 0x8000 ? -value : value;
}
inline uint16_t to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double a = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (a >= 65520) return sign | 0x7c00;
  const int exponent = a < 0x1p-14 ? -14 : std::ilogb(a);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(a, 10 - exponent)));  // 1024 ... 2048, or fewer for denormals
  return static_cast<uint16_t>(sign | (units + (static_cast<unsigned>(exponent + 14) << 10)));
}
inline float with_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
inline uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
// Rounds to nearest, dropping `dropped` bits.
inline float shortened(float f, int dropped) {
  if (!std::isfinite(f)) return f;
  const uint32_t b = bits_of(f), unit = uint32_t{1} << dropped;
  return with_bits((b + (unit / 2 - 1) + (b >> dropped & 1)) & ~(unit - 1));
}
