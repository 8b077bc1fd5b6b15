#include "backends/cpu/exec/transpose.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define NARU_AVX2 __attribute__((target("avx2")))
#endif

namespace naru::cpu {
namespace {

// Any part of a block, element by element, in pieces that fit into the L1 cache.
template <class T>
void plain(const char* source, int64_t source_step, int64_t rows, int64_t cols, char* target, int64_t target_step) noexcept {
  constexpr int64_t kPiece = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kPiece)
    for (int64_t j0 = 0; j0 < cols; j0 += kPiece) {
      const int64_t i1 = i0 + kPiece < rows ? i0 + kPiece : rows, j1 = j0 + kPiece < cols ? j0 + kPiece : cols;
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j)
          reinterpret_cast<T*>(target + i * target_step)[j] = reinterpret_cast<const T*>(source + j * source_step)[i];
    }
}

#if defined(__x86_64__)

// A tile is one cache line of the source (rows) by one of the target (cols). The loop prefetches the lines of the tile after the next one:
// their stride is too large for the hardware prefetcher.
constexpr int64_t kLine = 64, kAhead = 128;

NARU_AVX2 inline __m256 low_pair(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
NARU_AVX2 inline __m256 high_pair(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

// Transposes 8 by 8 elements of 4 bytes.
NARU_AVX2 inline void turn8(const char* s, int64_t step, __m256 out[8]) {
  __m256 r[8], h[8], q[8];
  for (int k = 0; k < 8; ++k) r[k] = _mm256_loadu_ps(reinterpret_cast<const float*>(s + k * step));
  for (int k = 0; k < 8; k += 2) h[k] = _mm256_unpacklo_ps(r[k], r[k + 1]), h[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
  for (int k = 0; k < 8; k += 4) {
    q[k] = low_pair(h[k], h[k + 2]), q[k + 1] = high_pair(h[k], h[k + 2]);
    q[k + 2] = low_pair(h[k + 1], h[k + 3]), q[k + 3] = high_pair(h[k + 1], h[k + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    out[k] = _mm256_permute2f128_ps(q[k], q[k + 4], 0x20);
    out[k + 4] = _mm256_permute2f128_ps(q[k], q[k + 4], 0x31);
  }
}

// Transposes 4 by 4 elements of 8 bytes.
NARU_AVX2 inline void turn4(const char* s, int64_t step, __m256d out[4]) {
  __m256d r[4];
  for (int k = 0; k < 4; ++k) r[k] = _mm256_loadu_pd(reinterpret_cast<const double*>(s + k * step));
  const __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
  const __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
  out[0] = _mm256_permute2f128_pd(a, c, 0x20), out[1] = _mm256_permute2f128_pd(b, d, 0x20);
  out[2] = _mm256_permute2f128_pd(a, c, 0x31), out[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

template <bool kStream>
NARU_AVX2 inline void put(char* target, __m256 value) {
  if constexpr (kStream)
    _mm256_stream_ps(reinterpret_cast<float*>(target), value);
  else
    _mm256_storeu_ps(reinterpret_cast<float*>(target), value);
}

template <bool kStream>
NARU_AVX2 inline void tile4(const char* s, int64_t source_step, char* t, int64_t target_step) {
  for (int k = 0; k < 16; ++k) _mm_prefetch(s + k * source_step + kAhead, _MM_HINT_T0);
  for (int half = 0; half < 2; ++half) {
    __m256 a[8], b[8];
    turn8(s + half * 32, source_step, a);
    turn8(s + half * 32 + 8 * source_step, source_step, b);
    for (int k = 0; k < 8; ++k) {
      char* const row = t + (half * 8 + k) * target_step;
      put<kStream>(row, a[k]);
      put<kStream>(row + 32, b[k]);
    }
  }
}

template <bool kStream>
NARU_AVX2 inline void tile8(const char* s, int64_t source_step, char* t, int64_t target_step) {
  for (int k = 0; k < 8; ++k) _mm_prefetch(s + k * source_step + kAhead, _MM_HINT_T0);
  for (int half = 0; half < 2; ++half) {
    __m256d a[4], b[4];
    turn4(s + half * 32, source_step, a);
    turn4(s + half * 32 + 4 * source_step, source_step, b);
    for (int k = 0; k < 4; ++k) {
      char* const row = t + (half * 4 + k) * target_step;
      put<kStream>(row, _mm256_castpd_ps(a[k]));
      put<kStream>(row + 32, _mm256_castpd_ps(b[k]));
    }
  }
}

// Whole tiles: rows and cols are multiples of the tile's side.
template <int kItem, bool kStream>
NARU_AVX2 void tiles(const char* source, int64_t source_step, int64_t rows, int64_t cols, char* target, int64_t target_step) {
  constexpr int64_t kSide = kLine / kItem;
  // Processes a few cache lines of each target row, then continues along the source rows.
  constexpr int64_t kCols = 4 * kSide;
  for (int64_t j0 = 0; j0 < cols; j0 += kCols)
    for (int64_t i = 0; i < rows; i += kSide)
      for (int64_t j = j0; j < j0 + kCols && j < cols; j += kSide) {
        const char* s = source + j * source_step + i * kItem;
        char* t = target + i * target_step + j * kItem;
        if constexpr (kItem == 4)
          tile4<kStream>(s, source_step, t, target_step);
        else
          tile8<kStream>(s, source_step, t, target_step);
      }
}

// Half tiles of 8 by 8 elements of 4 bytes.
NARU_AVX2 void half_tiles(const char* source, int64_t source_step, int64_t rows, int64_t cols, char* target, int64_t target_step) {
  for (int64_t i = 0; i < rows; i += 8)
    for (int64_t j = 0; j < cols; j += 8) {
      __m256 out[8];
      turn8(source + j * source_step + i * 4, source_step, out);
      for (int k = 0; k < 8; ++k) put<false>(target + (i + k) * target_step + j * 4, out[k]);
    }
}

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

#endif

template <class T>
void turn(const char* source, int64_t source_step, int64_t rows, int64_t cols, char* target, int64_t target_step, bool streaming) noexcept {
#if defined(__x86_64__)
  if constexpr (sizeof(T) >= 4) {
    constexpr int64_t kSide = kLine / static_cast<int64_t>(sizeof(T));
    constexpr auto kItem = static_cast<int64_t>(sizeof(T));
    int64_t r = rows / kSide * kSide, c = cols / kSide * kSide;
    if (has_avx2()) {
      if (r == 0 || c == 0)
        r = c = 0;
      else if (streaming)
        tiles<sizeof(T), true>(source, source_step, r, c, target, target_step);
      else
        tiles<sizeof(T), false>(source, source_step, r, c, target, target_step);
      if constexpr (kItem == 4) {
        const int64_t r8 = rows / 8 * 8, c8 = cols / 8 * 8;
        half_tiles(source + c * source_step, source_step, r, c8 - c, target + c * kItem, target_step);
        half_tiles(source + r * kItem, source_step, r8 - r, c8, target + r * target_step, target_step);
        r = r8, c = c8;
      }
      plain<T>(source + c * source_step, source_step, r, cols - c, target + c * kItem, target_step);
      return plain<T>(source + r * kItem, source_step, rows - r, cols, target + r * target_step, target_step);
    }
  }
#endif
  (void)streaming;
  plain<T>(source, source_step, rows, cols, target, target_step);
}

}  // namespace

void transpose(const char* source, int64_t source_step, int64_t item, int64_t rows, int64_t cols, char* target, int64_t target_step,
               bool streaming) noexcept {
  switch (item) {
    case 1:
      return turn<uint8_t>(source, source_step, rows, cols, target, target_step, streaming);
    case 2:
      return turn<uint16_t>(source, source_step, rows, cols, target, target_step, streaming);
    case 4:
      return turn<uint32_t>(source, source_step, rows, cols, target, target_step, streaming);
    default:
      return turn<uint64_t>(source, source_step, rows, cols, target, target_step, streaming);
  }
}

void stream_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace naru::cpu
