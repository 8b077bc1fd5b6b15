#include "backends/cpu/gemm/few_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "backends/cpu/exec/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace naru::cpu {
namespace {

constexpr int64_t kLanes = 8;

struct Bfloat {
  static __m256 load(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};
struct Half {
  static __m256 load(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
};
// The first n of them; the others are 0.
template <class From>
__m256 load_some(const uint16_t* p, int64_t n) {
  uint16_t whole[kLanes] = {};
  std::memcpy(whole, p, static_cast<size_t>(n) * sizeof *p);
  return From::load(whole);
}
__m256 load_some(const float* p, int64_t n) {
  float whole[kLanes] = {};
  std::memcpy(whole, p, static_cast<size_t>(n) * sizeof *p);
  return _mm256_loadu_ps(whole);
}

float sum_of(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Columns of b whose elements are contiguous: a dot product for each row.
template <class From, int kRows>
void by_columns(const FewRows& q) {
  for (int64_t j = 0; j < q.n; ++j) {
    const uint16_t* const column = q.b + j * q.b_col;
    __m256 sums[kRows][2];
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 2 * kLanes <= q.k; i += 2 * kLanes) {
      const __m256 first = From::load(column + i), second = From::load(column + i + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r][0] = _mm256_fmadd_ps(first, _mm256_loadu_ps(q.x + r * q.x_row + i), sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(second, _mm256_loadu_ps(q.x + r * q.x_row + i + kLanes), sums[r][1]);
      }
    }
    for (int half = 0; i < q.k; i += kLanes, ++half) {
      const int64_t n = std::min(kLanes, q.k - i);
      const __m256 some = load_some<From>(column + i, n);
      for (int r = 0; r < kRows; ++r) sums[r][half] = _mm256_fmadd_ps(some, load_some(q.x + r * q.x_row + i, n), sums[r][half]);
    }
    for (int r = 0; r < kRows; ++r) q.y[r * q.y_row + j] = sum_of(_mm256_add_ps(sums[r][0], sums[r][1]));
  }
}

// Rows of b that are contiguous: each is added, times an element of x, to the row of y; some rows at a time, which stay in the first cache.
constexpr int64_t kDepth = 128;
template <class From, int kRows>
void some_columns(const FewRows& q, int64_t first, int64_t depth, int64_t j, int64_t n) {
  __m256 sums[kRows][2];
  const bool whole = n == 2 * kLanes;
  const auto at = [&](int r, int half) { return q.y + r * q.y_row + j + half * kLanes; };
  const int64_t counts[2] = {std::min(n, kLanes), std::max<int64_t>(n - kLanes, 0)};
  for (int r = 0; r < kRows; ++r)
    for (int half = 0; half < 2; ++half)
      sums[r][half] = first == 0 ? _mm256_setzero_ps() : whole ? _mm256_loadu_ps(at(r, half)) : load_some(at(r, half), counts[half]);
  for (int64_t d = first; d < first + depth; ++d) {
    const uint16_t* const row = q.b + d * q.b_row + j;
    const __m256 left = whole ? From::load(row) : load_some<From>(row, counts[0]);
    const __m256 right = whole ? From::load(row + kLanes) : load_some<From>(row + kLanes, counts[1]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 x = _mm256_broadcast_ss(q.x + r * q.x_row + d);
      sums[r][0] = _mm256_fmadd_ps(x, left, sums[r][0]), sums[r][1] = _mm256_fmadd_ps(x, right, sums[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int half = 0; half < 2; ++half) {
      float eight[kLanes];
      _mm256_storeu_ps(eight, sums[r][half]);
      std::memcpy(at(r, half), eight, static_cast<size_t>(counts[half]) * sizeof(float));
    }
}
template <class From, int kRows>
void by_rows(const FewRows& q) {
  for (int64_t first = 0; first < q.k; first += kDepth)
    for (int64_t j = 0; j < q.n; j += 2 * kLanes)
      some_columns<From, kRows>(q, first, std::min(kDepth, q.k - first), j, std::min(2 * kLanes, q.n - j));
}

template <class From, int kRows>
void run_rows(const FewRows& q) {
  if (q.m != kRows) {
    if constexpr (kRows > 1) run_rows<From, kRows - 1>(q);
    return;
  }
  q.b_row == 1 ? by_columns<From, kRows>(q) : by_rows<From, kRows>(q);
}

}  // namespace

bool has_few_rows() noexcept {
  static const bool has = wide_level() >= 1 && __builtin_cpu_supports("f16c");
  return has;
}

void few_rows_product(const FewRows& q) { q.type == DType::BF16 ? run_rows<Bfloat, kMostFewRows>(q) : run_rows<Half, kMostFewRows>(q); }

}  // namespace naru::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace naru::cpu {
bool has_few_rows() noexcept { return false; }
void few_rows_product(const FewRows&) {}
}  // namespace naru::cpu

#endif
