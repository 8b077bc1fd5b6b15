// builtin_gemm.h for processors with AVX-512. The pragma comes after the headers, so that no code shared with other files is compiled for
// AVX-512.
#include "backends/cpu/gemm/builtin_gemm.h"

#include <cstring>

#include "backends/cpu/exec/transpose.h"

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

constexpr int kVectorBytes = 64, kTileRows = 8;

typedef float Floats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline Floats fused(float a, Floats b, Floats c) { return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c); }
inline Doubles fused(double a, Doubles b, Doubles c) { return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c); }

}  // namespace

#include "backends/cpu/gemm/builtin_gemm.inc"

void dots(int64_t count, int64_t k, const float* rows, int64_t ld, const float* x, float* y, int64_t incy) {
  constexpr int64_t kLanes = 16;
  const auto last = static_cast<__mmask16>((1u << k % kLanes) - 1);
  for (int64_t i = 0; i < count; ++i, rows += ld) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    int64_t p = 0;
    for (; p + 2 * kLanes <= k; p += 2 * kLanes) {
      even = _mm512_fmadd_ps(_mm512_loadu_ps(x + p), _mm512_loadu_ps(rows + p), even);
      odd = _mm512_fmadd_ps(_mm512_loadu_ps(x + p + kLanes), _mm512_loadu_ps(rows + p + kLanes), odd);
    }
    if (p + kLanes <= k) {
      even = _mm512_fmadd_ps(_mm512_loadu_ps(x + p), _mm512_loadu_ps(rows + p), even);
      p += kLanes;
    }
    if (last) odd = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(last, x + p), _mm512_maskz_loadu_ps(last, rows + p), odd);
    y[i * incy] = _mm512_reduce_add_ps(_mm512_add_ps(even, odd));
  }
}

}  // namespace naru::cpu::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
