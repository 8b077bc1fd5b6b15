#include "host/peak.h"

#include <algorithm>
#include <chrono>

#include "host/simd.h"
#include "host/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace naru::host {

#if defined(__x86_64__)
namespace {

constexpr int64_t kRounds = 500000;

// Enough chains for two units of four or five cycles each.
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

}  // namespace

double measure_peak() {
  const int level = wide_level(), threads = num_threads();
  if (level == 0) return 0;
  const double operations = static_cast<double>(kRounds) * (level == 2 ? 16 * 16 : 12 * 8) * 2 * threads;
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, [&](int64_t) { level == 2 ? fma512() : fma256(); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::max(best, operations / time.count());
  }
  return best;
}
#else
double measure_peak() { return 0; }
#endif

}  // namespace naru::host
