// Radix sort of pairs of a key and an index, for devices whose neighbouring items process neighbouring elements.
#pragma once

#include "render/c/launch.h"

namespace naru::render::c {

// Sorts int64 elements in [0, limit) whose `zeros` lowest bits are 0, or that are all equal, which needs fewer digits.
void sort_below(const ir::Sort& op, int64_t limit, int zeros, Launcher& launcher);

struct DigitSort {
  int64_t rows, n;  // pairs of a row are contiguous, and so are rows
  int key_bytes;    // 4 or 8
  int first, bits;  // sorts by these bits of a key: from `first` on, up to `bits`
  bool wide;        // the pairs need 64-bit indices
};
// Stable sort of the pairs of each row. Alternates between `keys`, `places` (u32) and scratch memory; returns where the indices are at the end.
void* sort_by_digits(const DigitSort& sort, void* keys, void* places, Launcher& launcher);

}  // namespace naru::render::c
