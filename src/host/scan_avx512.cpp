// Running sums and products of 16 rows of float side by side; the pragma stands behind the headers.
#include "host/scan_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")

namespace naru::host::avx512 {
namespace {

using Tile = __m512[16];

// Rows become columns.
__attribute__((always_inline)) inline void turn(Tile& r) {
  Tile t;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]), c = _mm512_castps_pd(t[i + 2]),
                  d = _mm512_castps_pd(t[i + 3]);
    r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c)), r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d)), r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  // r[4 q + k] now has columns k, 4 + k, 8 + k, 12 + k of rows 4 q to 4 q + 3.
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    t[k] = _mm512_shuffle_f32x4(r[k], r[4 + k], 0x88), t[4 + k] = _mm512_shuffle_f32x4(r[k], r[4 + k], 0xdd);
    t[8 + k] = _mm512_shuffle_f32x4(r[8 + k], r[12 + k], 0x88);
    t[12 + k] = _mm512_shuffle_f32x4(r[8 + k], r[12 + k], 0xdd);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    r[k] = _mm512_shuffle_f32x4(t[k], t[8 + k], 0x88), r[8 + k] = _mm512_shuffle_f32x4(t[k], t[8 + k], 0xdd);
    r[4 + k] = _mm512_shuffle_f32x4(t[4 + k], t[12 + k], 0x88);
    r[12 + k] = _mm512_shuffle_f32x4(t[4 + k], t[12 + k], 0xdd);
  }
}

template <bool kSum, bool kStream>
void scan(const char* from, int64_t from_pitch, char* to, int64_t to_pitch, int64_t length) {
  __m512 running = _mm512_set1_ps(kSum ? 0.0f : 1.0f);
  for (int64_t at = 0; at < length; at += 16) {
    const auto columns = static_cast<__mmask16>(length - at < 16 ? (1 << (length - at)) - 1 : 0xffff);
    Tile r;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_maskz_loadu_ps(columns, from + i * from_pitch + at * 4);
    turn(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = running = kSum ? _mm512_add_ps(running, r[i]) : _mm512_mul_ps(running, r[i]);
    turn(r);
    if (kStream && columns == 0xffff) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_stream_ps(reinterpret_cast<float*>(to + i * to_pitch + at * 4), r[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_mask_storeu_ps(to + i * to_pitch + at * 4, columns, r[i]);
    }
  }
}

}  // namespace

void scan_rows(const char* from, int64_t from_pitch, char* to, int64_t to_pitch, int64_t length, bool sum, bool stream) {
  if (sum)
    stream ? scan<true, true>(from, from_pitch, to, to_pitch, length) : scan<true, false>(from, from_pitch, to, to_pitch, length);
  else
    stream ? scan<false, true>(from, from_pitch, to, to_pitch, length) : scan<false, false>(from, from_pitch, to, to_pitch, length);
}

}  // namespace naru::host::avx512

#pragma GCC pop_options
#endif
