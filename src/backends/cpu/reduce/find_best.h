// First index of the maximum or minimum of a row; NaN counts as best.
#pragma once

#include <cstdint>

namespace naru::cpu {

#define NARU_FIND_BEST(set)                                    \
  namespace set {                                              \
  int64_t find_best(const uint8_t*, int64_t n, bool greatest); \
  int64_t find_best(const int8_t*, int64_t n, bool greatest);  \
  int64_t find_best(const int16_t*, int64_t n, bool greatest); \
  int64_t find_best(const int32_t*, int64_t n, bool greatest); \
  int64_t find_best(const int64_t*, int64_t n, bool greatest); \
  int64_t find_best(const float*, int64_t n, bool greatest);   \
  int64_t find_best(const double*, int64_t n, bool greatest);  \
  }
NARU_FIND_BEST(plain)
#if defined(__x86_64__)
NARU_FIND_BEST(avx2)
NARU_FIND_BEST(avx512)
#endif
#undef NARU_FIND_BEST

}  // namespace naru::cpu
