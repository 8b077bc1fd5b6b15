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
// Rows whose sums the registers hold.
constexpr int kTogether = 7;

struct Float {
  using Item = float;
  static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
};
struct Bfloat {
  using Item = uint16_t;
  static __m256 load(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};
struct Half {
  using Item = uint16_t;
  static __m256 load(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
};
// The first n of them; the others are 0.
template <class From>
__m256 load_some(const typename From::Item* p, int64_t n) {
  typename From::Item whole[kLanes] = {};
  std::memcpy(whole, p, static_cast<size_t>(n) * sizeof *p);
  return From::load(whole);
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
    const auto* const column = static_cast<const typename From::Item*>(q.b) + j * q.b_col;
    __m256 sums[kRows][2];
#pragma GCC unroll 8
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
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half, i += kLanes) {
      if (i >= q.k) break;
      const int64_t n = std::min(kLanes, q.k - i);
      const __m256 some = load_some<From>(column + i, n);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][half] = _mm256_fmadd_ps(some, load_some<Float>(q.x + r * q.x_row + i, n), sums[r][half]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) q.y[r * q.y_row + j] = sum_of(_mm256_add_ps(sums[r][0], sums[r][1]));
  }
}

// Rows of b that are contiguous: each is added, times an element of x, to the row of y; some rows at a time, which stay in the first cache.
constexpr int64_t kDepth = 32;
template <class From, int kRows, int kVectors, bool kWhole>
void some_columns(const FewRows& q, int64_t first, int64_t depth, int64_t j, int64_t n) {
  const auto count = [&](int v) { return std::clamp<int64_t>(n - v * kLanes, 0, kLanes); };
  const auto* row = static_cast<const typename From::Item*>(q.b) + first * q.b_row + j;
  const float* x = q.x + first;
  __m256 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const float* const from = q.y + r * q.y_row + j + v * kLanes;
      sums[r][v] = first == 0 ? _mm256_setzero_ps() : kWhole ? _mm256_loadu_ps(from) : load_some<Float>(from, count(v));
    }
  for (int64_t d = 0; d < depth; ++d, row += q.b_row, ++x) {
    __m256 right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = kWhole ? From::load(row + v * kLanes) : load_some<From>(row + v * kLanes, count(v));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 one = _mm256_broadcast_ss(x + r * q.x_row);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm256_fmadd_ps(one, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const to = q.y + r * q.y_row + j + v * kLanes;
      float eight[kLanes];
      if (kWhole)
        _mm256_storeu_ps(to, sums[r][v]);
      else
        _mm256_storeu_ps(eight, sums[r][v]), std::memcpy(to, eight, static_cast<size_t>(count(v)) * sizeof(float));
    }
}
template <class From, int kRows>
void by_rows(const FewRows& q) {
  constexpr int kVectors = kRows <= 3 ? 4 : 2;  // few rows take more columns, so that enough sums run side by side
  constexpr int64_t kColumns = kVectors * kLanes;
  for (int64_t first = 0; first < q.k; first += kDepth)
    for (int64_t j = 0; j < q.n; j += kColumns) {
      const int64_t depth = std::min(kDepth, q.k - first), n = std::min(kColumns, q.n - j);
      n == kColumns ? some_columns<From, kRows, kVectors, true>(q, first, depth, j, n)
                    : some_columns<From, kRows, kVectors, false>(q, first, depth, j, n);
    }
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

void few_rows_product(const FewRows& whole) {
  const int64_t rounds = (whole.m + kTogether - 1) / kTogether, each = (whole.m + rounds - 1) / rounds;
  for (int64_t first = 0; first < whole.m; first += each) {
    FewRows q = whole;
    q.m = std::min(each, whole.m - first), q.x += first * q.x_row, q.y += first * q.y_row;
    if (q.type == DType::F32)
      run_rows<Float, kTogether>(q);
    else if (q.type == DType::BF16)
      run_rows<Bfloat, kTogether>(q);
    else
      run_rows<Half, kTogether>(q);
  }
}

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
