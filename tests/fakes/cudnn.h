// Shared by the files of the fake cuDNN: constants of the library's header, and its types as stored in memory.
#pragma once

#include <cmath>

#include "cuda_library.h"

enum { kNotInitialized = 1001, kBadParam = 2000, kTooSmall = 2006, kMisfit = 2008, kNotSupported = 3000, kInternal = 4000, kFailed = 5000 };
enum { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };

struct Handle {
  void *context, *stream;
};

inline size_t item(int type) { return type == kDouble ? 8 : type == kFloat ? 4 : 2; }

inline double of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction ? NAN : INFINITY)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}
// Rounds to nearest even, to a significand of `bits` bits; the least denormal is 2^least.
inline double rounded(double x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int place = std::max(std::ilogb(x) - bits + 1, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -place)), place);
}
inline uint16_t to_half(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7e00;
  const double r = std::abs(rounded(x, 11, -24));
  if (r >= 65536) return sign | 0x7c00;
  if (r < std::ldexp(1, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(r, 24)));
  const int e = std::ilogb(r);
  return static_cast<uint16_t>(sign | (e + 15) << 10 | (static_cast<int>(std::ldexp(r, 10 - e)) & 1023));
}

inline double get(const char* p, int type, size_t i) {
  switch (type) {
    case kFloat:
      return reinterpret_cast<const float*>(p)[i];
    case kDouble:
      return reinterpret_cast<const double*>(p)[i];
    case kHalf:
      return of_half(reinterpret_cast<const uint16_t*>(p)[i]);
    default: {
      const uint32_t bits = static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(p)[i]) << 16;
      float v;
      memcpy(&v, &bits, 4);
      return v;
    }
  }
}
inline void put(char* p, int type, size_t i, double v) {
  switch (type) {
    case kFloat:
      reinterpret_cast<float*>(p)[i] = static_cast<float>(v);
      break;
    case kDouble:
      reinterpret_cast<double*>(p)[i] = v;
      break;
    case kHalf:
      reinterpret_cast<uint16_t*>(p)[i] = to_half(v);
      break;
    default: {
      const auto f = static_cast<float>(rounded(v, 8, -133));
      uint32_t bits;
      memcpy(&bits, &f, 4);
      reinterpret_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(std::isnan(v) ? 0x7fc0 : bits >> 16);
    }
  }
}
