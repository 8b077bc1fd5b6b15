// find_best.h for processors with AVX2; the pragma stands behind the headers.
#include "host/find_best.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace naru::host::avx2 {
namespace {

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

}  // namespace

#include "host/find_best.inc"
}  // namespace naru::host::avx2

#pragma GCC pop_options
#endif
