// builtin_gemm.h for processors with AVX2. The pragma comes after the headers, so that no code shared with other files is compiled for AVX2.
#include "backends/cpu/gemm/builtin_gemm.h"

#include <cstring>

#include "backends/cpu/exec/transpose.h"

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

constexpr int kVectorBytes = 32, kTileRows = 6;

typedef float Floats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline Floats fused(float a, Floats b, Floats c) { return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c); }
inline Doubles fused(double a, Doubles b, Doubles c) { return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c); }

}  // namespace

#include "backends/cpu/gemm/builtin_gemm.inc"

}  // namespace naru::cpu::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
