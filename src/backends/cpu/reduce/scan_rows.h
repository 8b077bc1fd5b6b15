// Cumulative sums, products, maxima and minima of 16 rows of floats at once.
#pragma once

#include <cstdint>

#include "ir/reduce.h"

namespace naru::cpu::avx512 {

// Rows of `length` floats, `pitch` bytes apart; from and to may be the same rows. Each row's scan starts with the identity, and before[row]
// is then combined with each of its values. totals: the last value of each scan; length must be a multiple of 16 for them.
struct Rows {
  const char* from;
  int64_t from_pitch;
  char* to;
  int64_t to_pitch, length;
  const float* before;
  float* totals;
};
// stream: uses non-temporal stores; `to` and its pitch must be multiples of 64, and the caller must call stream_fence() at the end.
// op: Sum, Prod, Max or Min.
void scan_rows(const Rows& rows, ir::ReduceOp op, bool stream);

}  // namespace naru::cpu::avx512
