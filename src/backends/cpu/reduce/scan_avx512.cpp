// Cumulative sums, products, maxima and minima of 16 rows of floats at once; the pragma comes after the headers.
#include "backends/cpu/reduce/scan_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
#endif

namespace naru::cpu::avx512 {
namespace {

using Tile = __m512[16];

// Transposes the tile.
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

using ir::ReduceOp;

template <ReduceOp kOp>
__attribute__((always_inline)) inline __m512 combined(__m512 before, __m512 x) {
  if constexpr (kOp == ReduceOp::Sum) {
    return _mm512_add_ps(before, x);
  } else if constexpr (kOp == ReduceOp::Prod) {
    return _mm512_mul_ps(before, x);
  } else {
    const __mmask16 stays = static_cast<__mmask16>(_mm512_cmp_ps_mask(before, x, kOp == ReduceOp::Max ? _CMP_GT_OQ : _CMP_LT_OQ) |
                                                   _mm512_cmp_ps_mask(before, before, _CMP_UNORD_Q));
    return _mm512_mask_blend_ps(stays, x, before);
  }
}
constexpr float identity(ReduceOp op) {
  return op == ReduceOp::Sum ? 0.0f : op == ReduceOp::Prod ? 1.0f : op == ReduceOp::Max ? -__builtin_huge_valf() : __builtin_huge_valf();
}

template <ReduceOp kOp, bool kStream>
void scan(const Rows& rows) {
  const auto [from, from_pitch, to, to_pitch, length, before_all, totals] = rows;
  const __m512 before = _mm512_loadu_ps(before_all);
  __m512 running = _mm512_set1_ps(identity(kOp));
  for (int64_t at = 0; at < length; at += 16) {
    const auto columns = static_cast<__mmask16>(length - at < 16 ? (1 << (length - at)) - 1 : 0xffff);
    Tile r;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_maskz_loadu_ps(columns, from + i * from_pitch + at * 4);
    turn(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      running = combined<kOp>(running, r[i]);
      r[i] = combined<kOp>(before, running);
    }
    turn(r);
    if (kStream && columns == 0xffff) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_stream_ps(reinterpret_cast<float*>(to + i * to_pitch + at * 4), r[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_mask_storeu_ps(to + i * to_pitch + at * 4, columns, r[i]);
    }
  }
  _mm512_storeu_ps(totals, running);
}

}  // namespace

void scan_rows(const Rows& rows, ReduceOp op, bool stream) {
  using Function = void (*)(const Rows&);
  constexpr Function kFunctions[][2] = {{scan<ReduceOp::Sum, false>, scan<ReduceOp::Sum, true>},
                                        {scan<ReduceOp::Prod, false>, scan<ReduceOp::Prod, true>},
                                        {scan<ReduceOp::Max, false>, scan<ReduceOp::Max, true>},
                                        {scan<ReduceOp::Min, false>, scan<ReduceOp::Min, true>}};
  kFunctions[static_cast<int>(op)][stream](rows);
}

}  // namespace naru::cpu::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
