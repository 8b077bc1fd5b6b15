#include "backends/cpu/attention/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/exec/lanes.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/builtin_gemm.h"

namespace naru::cpu {
namespace {

typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t)), aligned(4), may_alias));
constexpr float kHidden = -std::numeric_limits<float>::infinity();

// x = e^(x - shift), within 1.1 units in the last place of e^; below -87.3, 0. e^x = 2^n e^r with r = x - n ln 2, and e^r = 1 + r + r^2 p(r), p
// fitted by least squares on |r| <= ln 2 / 2.
[[gnu::always_inline]] inline void exponentials(Floats& x, float shift) {
  x -= shift;
  const Ints below = x < -87.3f;
  Floats n = x;
  multiply_add(n, Floats{} + 1.44269504f, Floats{} + 12582912.0f);  // rounds to an integer, in the lowest bits
  const Ints power = (reinterpret_cast<const Ints&>(n) + (127 - 0x4b400000)) << 23;
  n -= 12582912.0f;
  Floats r = n;
  multiply_add(r, Floats{} - 0.693359375f, x);
  multiply_add(n, Floats{} + 2.12194440e-4f, r);
  Floats p = n;
  multiply_add(p, Floats{} + 1.393373357e-3f, Floats{} + 8.363235742e-3f);
  multiply_add(p, n, Floats{} + 4.166646302e-2f);
  multiply_add(p, n, Floats{} + 1.666657627e-1f);
  multiply_add(p, n, Floats{} + 0.5f);
  multiply_add(p, n * n, n);
  p = (p + 1.0f) * reinterpret_cast<const Floats&>(power);
  x = reinterpret_cast<const Floats&>(static_cast<const Ints&>(reinterpret_cast<const Ints&>(p) & ~below));
}

[[gnu::always_inline]] inline float greatest_of(const Floats& v) {
  float x = v[0];
  for (int i = 1; i < kLanes; ++i) x = v[i] > x ? v[i] : x;
  return x;
}
[[gnu::always_inline]] inline float sum_of(Floats v) {
  float x[kLanes];
  std::memcpy(x, &v, sizeof x);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  return x[0];
}

// The number of keys of the block that row r sees.
[[gnu::always_inline]] inline int64_t seen_of(const ScoreRows& s, int64_t r) {
  const int64_t reach = s.first + r + 1 - s.key;
  return !s.causal || reach > s.keys ? s.keys : reach < 0 ? 0 : reach;
}

// Scales the scores of row r, adds their bias, and hides what the row does not see, up to the end of its room. Returns the greatest.
[[gnu::always_inline]] inline float prepare(const ScoreRows& s, int64_t r, int64_t seen) {
  float* const row = s.data + r * s.row;
  const int64_t end = whole_panels(s.keys);
  if (s.bias) {
    const float* const bias = s.bias + r * s.bias_row;
    for (int64_t i = 0; i < seen; ++i) row[i] = row[i] * s.scale + bias[i];
  }
  const float scale = s.bias ? 1.0f : s.scale;
  for (int64_t i = seen; i < end; ++i) row[i] = kHidden;
  Floats most = Floats{} + kHidden;
  for (int64_t i = 0; i < end; i += kLanes) {
    Floats& x = *reinterpret_cast<Floats*>(row + i);
    if (i + kLanes <= seen)
      x = x * scale;
    else
      for (int64_t j = i; j < seen; ++j) row[j] *= scale;
    most = x > most ? x : most;
  }
  return greatest_of(most);
}

}  // namespace

NARU_WIDE void softmax_step(const ScoreRows& s, float* most, float* sums, float* out, int64_t out_row, int64_t width) {
  const int64_t end = whole_panels(s.keys);
  for (int64_t r = 0; r < s.rows; ++r) {
    float* const row = s.data + r * s.row;
    const int64_t seen = seen_of(s, r);
    if (seen == 0) {
      std::memset(row, 0, static_cast<size_t>(end) * sizeof(float));
      continue;
    }
    const float now = std::max(most[r], prepare(s, r, seen));
    const float shift = now == kHidden ? 0.0f : now;  // all are hidden: weights of 0
    Floats total{};
    for (int64_t i = 0; i < end; i += kLanes) {
      Floats x = *reinterpret_cast<Floats*>(row + i);
      exponentials(x, shift);
      *reinterpret_cast<Floats*>(row + i) = x;
      total += x;
    }
    Floats before{};
    before[0] = most[r];
    exponentials(before, shift);
    const float factor = most[r] == kHidden ? 0.0f : before[0];
    sums[r] = sums[r] * factor + sum_of(total);
    most[r] = now;
    if (factor == 1.0f) continue;
    float* const o = out + r * out_row;
    for (int64_t i = 0; i < width; ++i) o[i] *= factor;
  }
}

NARU_WIDE void softmax_gradients(const ScoreRows& s, const float* stats, const float* dots, float* grads) {
  const int64_t end = whole_panels(s.keys);
  for (int64_t r = 0; r < s.rows; ++r) {
    float *const row = s.data + r * s.row, *const grad = grads + r * s.row;
    const int64_t seen = stats[r] == kHidden ? 0 : seen_of(s, r);
    if (seen == 0) {
      std::memset(row, 0, static_cast<size_t>(end) * sizeof(float));
      std::memset(grad, 0, static_cast<size_t>(end) * sizeof(float));
      continue;
    }
    static_cast<void>(prepare(s, r, seen));
    const float shift = stats[r], dot = dots[r];
    for (int64_t i = 0; i < end; i += kLanes) {
      Floats x = *reinterpret_cast<Floats*>(row + i);
      exponentials(x, shift);
      *reinterpret_cast<Floats*>(row + i) = x;
      Floats& g = *reinterpret_cast<Floats*>(grad + i);
      g = x * (g - dot);
    }
    for (int64_t i = seen; i < end; ++i) grad[i] = 0;  // 0 times what padding has
  }
}

}  // namespace naru::cpu
