// find_best.h for processors with AVX-512; the pragma comes after the headers.
#include "backends/cpu/reduce/find_best.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#endif

namespace naru::cpu::avx512 {
namespace {

template <bool kGreatest, class T>
T extreme(const T* x, int64_t n, bool& nan);

int64_t first_equal(const float* x, int64_t n, float value) {
  const __m512 v = _mm512_set1_ps(value);
  int64_t k = 0;
  for (; k + 64 <= n; k += 64) {
    const __mmask16 a = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k), v, _CMP_EQ_OQ);
    const __mmask16 b = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k + 16), v, _CMP_EQ_OQ);
    const __mmask16 c = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k + 32), v, _CMP_EQ_OQ);
    const __mmask16 d = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k + 48), v, _CMP_EQ_OQ);
    const __mmask32 low = _mm512_kunpackw(b, a), high = _mm512_kunpackw(d, c);
    if (const auto hits = _cvtmask64_u64(_mm512_kunpackd(high, low))) return k + __builtin_ctzll(hits);
  }
  for (; k < n; ++k)
    if (x[k] == value) return k;
  return 0;
}

template <bool kGreatest>
inline __m512 better(__m512 a, __m512 b) {
  return kGreatest ? _mm512_max_ps(a, b) : _mm512_min_ps(a, b);
}

// Four vectors at a time; the tail is read with overlap, together with elements before it.
template <bool kGreatest>
float extreme(const float* x, int64_t n, bool& nan) {
  if (n < 64) return extreme<kGreatest, float>(x, n, nan);
  __m512 a = _mm512_loadu_ps(x), b = a, c = a, d = a;
  unsigned odd = 0;
  for (int64_t i = 0; i < n; i += 64) {
    const float* at = x + (i + 64 <= n ? i : n - 64);
    const __m512 p = _mm512_loadu_ps(at), q = _mm512_loadu_ps(at + 16), r = _mm512_loadu_ps(at + 32), s = _mm512_loadu_ps(at + 48);
    a = better<kGreatest>(p, a), b = better<kGreatest>(q, b), c = better<kGreatest>(r, c), d = better<kGreatest>(s, d);
    odd |= _cvtmask16_u32(_kor_mask16(_mm512_cmp_ps_mask(p, q, _CMP_UNORD_Q), _mm512_cmp_ps_mask(r, s, _CMP_UNORD_Q)));
  }
  nan = odd != 0;
  a = better<kGreatest>(better<kGreatest>(a, b), better<kGreatest>(c, d));
  return kGreatest ? _mm512_reduce_max_ps(a) : _mm512_reduce_min_ps(a);
}

}  // namespace

#include "backends/cpu/reduce/find_best.inc"
}  // namespace naru::cpu::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
