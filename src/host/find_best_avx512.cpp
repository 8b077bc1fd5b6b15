// find_best.h for processors with AVX-512; the pragma stands behind the headers.
#include "host/find_best.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")

namespace naru::host::avx512 {
namespace {

int64_t first_equal(const float* x, int64_t n, float value) {
  int64_t k = 0;
  for (; k + 16 <= n; k += 16) {
    const __m512 v = _mm512_set1_ps(value);
    const unsigned hits = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k), v, _CMP_EQ_OQ);
    if (hits) return k + __builtin_ctz(hits);
  }
  for (; k < n; ++k)
    if (x[k] == value) return k;
  return 0;
}

}  // namespace

#include "host/find_best.inc"
}  // namespace naru::host::avx512

#pragma GCC pop_options
#endif
