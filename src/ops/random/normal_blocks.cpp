// Box-Muller in loops that the compiler vectorizes (flags in src/CMakeLists.txt). Hardware fma and the C library's fma give the same bits.
#include "ops/random/normal_blocks.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace naru::ops {
namespace {

// --- Cephes' logf and sincosf, step for step, with fused multiply-adds.

inline float log_steps(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x);
  const float m = std::bit_cast<float>((bits & ~0x7f800000) | 0x3f000000);
  const bool small = m < 0.707106781186547524f;
  const float e = static_cast<float>((bits >> 23) - 126) - (small ? 1.0f : 0.0f);
  const float t = small ? m - 1 + m : m - 1;
  const float z = t * t;
  float y = std::fma(7.0376836292E-2f, t, -1.1514610310E-1f);
  y = std::fma(y, t, 1.1676998740E-1f);
  y = std::fma(y, t, -1.2420140846E-1f);
  y = std::fma(y, t, 1.4249322787E-1f);
  y = std::fma(y, t, -1.6668057665E-1f);
  y = std::fma(y, t, 2.0000714765E-1f);
  y = std::fma(y, t, -2.4999993993E-1f);
  y = std::fma(y, t, 3.3333331174E-1f);
  y = y * t;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, t + y);
}

inline void sin_cos_steps(float x, float& sine, float& cosine) {
  auto j = static_cast<int32_t>(x * 1.27323954473516f);
  j = (j + 1) & ~1;
  const auto y = static_cast<float>(j);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948E-005f, z, -1.388731625493765E-003f);
  c = std::fma(c, z, 4.166664568298827E-002f) * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1;
  float s = std::fma(-1.9515295891E-4f, z, 8.3321608736E-3f);
  s = std::fma(s, z, -1.6666654611E-1f) * z;
  s = std::fma(s, x, x);
  // The sign bits: the quadrant gives them in bit 2 of j.
  const bool swapped = (j & 2) != 0;
  const auto flip = [](float a, int32_t by) { return std::bit_cast<float>(std::bit_cast<int32_t>(a) ^ ((by & 4) << 29)); };
  sine = flip(swapped ? c : s, j);
  cosine = flip(swapped ? s : c, ~(j - 2));
}

inline void block_steps(float* v, float mean, float std) {
  for (int i = 0; i < 8; ++i) {
    float sine, cosine;
    const float radius = std::sqrt(-2.0f * log_steps(1.0f - v[i]));
    sin_cos_steps(6.2831853071795864769f * v[i + 8], sine, cosine);
    v[i] = std::fma(radius * cosine, std, mean);
    v[i + 8] = std::fma(radius * sine, std, mean);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), flatten)) void all_blocks_avx2(float* v, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; ++b) block_steps(v + 16 * b, mean, std);
}
#endif

}  // namespace

void normals_of(float* v, int64_t blocks, float mean, float std) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return all_blocks_avx2(v, blocks, mean, std);
#endif
  for (int64_t b = 0; b < blocks; ++b) block_steps(v + 16 * b, mean, std);
}

void normals_of(double* v, int64_t blocks, double mean, double std) {
  for (double* const end = v + 16 * blocks; v < end; v += 16)
    for (int i = 0; i < 8; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - v[i])), angle = 2 * std::numbers::pi * v[i + 8];
      v[i] = std::fma(radius * std::cos(angle), std, mean);
      v[i + 8] = std::fma(radius * std::sin(angle), std, mean);
    }
}

}  // namespace naru::ops
