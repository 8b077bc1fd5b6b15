// find_best.h for processors with AVX2; the pragma comes after the headers.
#include "backends/cpu/reduce/find_best.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace naru::cpu::avx2 {
namespace {

template <bool kGreatest, class T>
T extreme(const T* x, int64_t n, bool& nan);

int64_t first_equal(const float* x, int64_t n, float value) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m256 v = _mm256_set1_ps(value);
    const auto hits = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + k), v, _CMP_EQ_OQ)));
    if (hits) return k + __builtin_ctz(hits);
  }
  for (; k < n; ++k)
    if (x[k] == value) return k;
  return 0;
}

template <bool kGreatest>
inline __m256 better(__m256 a, __m256 b) {
  return kGreatest ? _mm256_max_ps(a, b) : _mm256_min_ps(a, b);
}

// Four vectors at a time; the tail is read with overlap, together with elements before it.
template <bool kGreatest>
float extreme(const float* x, int64_t n, bool& nan) {
  if (n < 32) return extreme<kGreatest, float>(x, n, nan);
  __m256 a = _mm256_loadu_ps(x), b = a, c = a, d = a, odd = _mm256_setzero_ps();
  for (int64_t i = 0; i < n; i += 32) {
    const float* at = x + (i + 32 <= n ? i : n - 32);
    const __m256 p = _mm256_loadu_ps(at), q = _mm256_loadu_ps(at + 8), r = _mm256_loadu_ps(at + 16), s = _mm256_loadu_ps(at + 24);
    a = better<kGreatest>(p, a), b = better<kGreatest>(q, b), c = better<kGreatest>(r, c), d = better<kGreatest>(s, d);
    odd = _mm256_or_ps(odd, _mm256_or_ps(_mm256_cmp_ps(p, q, _CMP_UNORD_Q), _mm256_cmp_ps(r, s, _CMP_UNORD_Q)));
  }
  nan = _mm256_movemask_ps(odd) != 0;
  float lanes[8];
  _mm256_storeu_ps(lanes, better<kGreatest>(better<kGreatest>(a, b), better<kGreatest>(c, d)));
  float best = lanes[0];
  for (const float v : lanes) best = (kGreatest ? v > best : v < best) ? v : best;
  return best;
}

}  // namespace

#include "backends/cpu/reduce/find_best.inc"
}  // namespace naru::cpu::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
