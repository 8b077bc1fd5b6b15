// Sixteen float32 side by side on every processor, so that sums have one order. Used within functions that are NARU_WIDE (simd.h).
#pragma once

#include <cstdint>
#include <cstring>

namespace naru::cpu {

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// x = x * y + z, rounded once.
[[gnu::always_inline]] inline void multiply_add(Floats& x, const Floats& y, const Floats& z) {
  float a[kLanes], b[kLanes], c[kLanes];
  std::memcpy(a, &x, sizeof a), std::memcpy(b, &y, sizeof b), std::memcpy(c, &z, sizeof c);
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  std::memcpy(&x, a, sizeof a);
}

}  // namespace naru::cpu
