// Overflow-checked arithmetic for sizes that a caller chose: RuntimeError if the result exceeds 64 bits.
#pragma once

#include <cstdint>

#include "naru/error.h"

namespace naru::ops {

inline int64_t times(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw RuntimeError("Storage size calculation overflowed: {} times {} goes beyond 64 bits", a, b);
  return r;
}
inline int64_t plus(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw RuntimeError("Storage size calculation overflowed: {} plus {} goes beyond 64 bits", a, b);
  return r;
}

}  // namespace naru::ops
