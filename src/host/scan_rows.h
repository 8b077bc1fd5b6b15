// Running sums and products of 16 rows of floats at once.
#pragma once

#include <cstdint>

namespace naru::host::avx512 {

// Rows of `length` floats, `pitch` bytes from row to row; from and to may be the same rows. The first result is 0 + x
// (1 * x). stream: past the caches; `to` and its pitch are multiples of 64 then, and the caller ends with
// stream_fence().
void scan_rows(const char* from, int64_t from_pitch, char* to, int64_t to_pitch, int64_t length, bool sum, bool stream);

}  // namespace naru::host::avx512
