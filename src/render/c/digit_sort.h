// Sorting pairs of a key and a place by the key's digits, on devices whose items take neighbouring elements.
#pragma once

#include "render/c/launch.h"

namespace naru::render::c {

// The sort of int64 elements from 0 to below `limit`, which takes fewer digits.
void sort_below(const ir::Sort& op, int64_t limit, Launcher& launcher);

struct DigitSort {
  int64_t rows, n;  // pairs of a row lie behind one another, rows too
  int key_bytes;    // 4 or 8
  int bits;         // the lowest bits of a key; the others are not looked at
  bool wide;        // there are too many pairs for numbers of 32 bits
};
// Sorts the pairs of each row, equal ones in their order, going back and forth between `keys`, `places` (u32) and memory of its own. Where the places
// are then.
void* sort_by_digits(const DigitSort& sort, void* keys, void* places, Launcher& launcher);

}  // namespace naru::render::c
