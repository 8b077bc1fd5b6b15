// Running sums, products and extremes of a block of 16 rows of floats at once.
#pragma once

#include <cstdint>

#include "ir/reduce.h"

namespace naru::host::avx512 {

// Rows of `length` floats, `pitch` bytes from row to row; from and to may be the same rows. Chains begin with the identity, and before[row] is
// put to each of their values; totals: where they end, of a length that is a multiple of 16.
struct Rows {
  const char* from;
  int64_t from_pitch;
  char* to;
  int64_t to_pitch, length;
  const float* before;
  float* totals;
};
// stream: past the caches; `to` and its pitch are multiples of 64 then, and the caller ends with stream_fence().
// op: Sum, Prod, Max or Min.
void scan_rows(const Rows& rows, ir::ReduceOp op, bool stream);

}  // namespace naru::host::avx512
