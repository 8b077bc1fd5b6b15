#include "backends/cpu/exec/peak.h"

#include <algorithm>
#include <chrono>

#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace naru::cpu {
namespace {

[[maybe_unused]] constexpr int64_t kRounds = 500000;

// The best rate in ten runs of `work`, of `operations` operations, on every thread.
[[maybe_unused]] double best_of_ten(double operations, void (*work)()) {
  const int threads = num_threads();
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, [&](int64_t) { work(); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::max(best, operations * threads / time.count());
  }
  return best;
}

#if defined(__x86_64__)
// Enough independent chains to keep two units with latencies of four or five cycles busy.
__attribute__((target("avx2,fma"))) void fma256() {
  __m256 r[12];
  for (int i = 0; i < 12; ++i) r[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 k = _mm256_set1_ps(0.5f);
  for (int64_t n = 0; n < kRounds; ++n)
#pragma GCC unroll 12
    for (auto& x : r) x = _mm256_fmadd_ps(x, k, k);
  for (auto& x : r) asm volatile("" ::"x"(x));
}

__attribute__((target("avx512f"))) void fma512() {
  __m512 r[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 k = _mm512_set1_ps(0.5f);
  for (int64_t n = 0; n < kRounds; ++n)
#pragma GCC unroll 16
    for (auto& x : r) x = _mm512_fmadd_ps(x, k, k);
  for (auto& x : r) asm volatile("" ::"v"(x));
}

#elif defined(__aarch64__)
// Enough independent chains to keep four units with a latency of four cycles busy.
void fma128() {
  float32x4_t r[16];
  for (int i = 0; i < 16; ++i) r[i] = vdupq_n_f32(static_cast<float>(i));
  const float32x4_t k = vdupq_n_f32(0.5f);
  for (int64_t n = 0; n < kRounds; ++n)
#pragma GCC unroll 16
    for (auto& x : r) x = vfmaq_f32(k, x, k);
  for (auto& x : r) asm volatile("" ::"w"(x));
}
#endif

}  // namespace

double measure_peak() {
#if defined(__x86_64__)
  const int level = wide_level();
  if (level == 2) return best_of_ten(2.0 * kRounds * 16 * 16, fma512);
  if (level == 1) return best_of_ten(2.0 * kRounds * 12 * 8, fma256);
#elif defined(__aarch64__)
  return best_of_ten(2.0 * kRounds * 16 * 4, fma128);
#endif
  return 0;
}

}  // namespace naru::cpu
