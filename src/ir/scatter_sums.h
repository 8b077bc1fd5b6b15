// The canonical order of a Scatter that adds floating-point values, used by every device.
//
// If there are many values per target element (kPlaceValues), the values added to an element form a row, in the order of the values. The row is
// cut into blocks of kScatterBlock values; the first block starts with the element's old value. Each block is summed in one chain, and the blocks'
// sums are a row that is summed the same way. So up to kScatterBlock values are added one after the other, and longer rows give work for one item
// per block. Otherwise an element's values are one chain, whatever their number. The shapes alone decide. Integers wrap around, so their order
// does not matter.
#pragma once

#include "ir/instruction.h"

namespace naru::ir {

constexpr int64_t kScatterBlock = 256;

// The average number of values per target element from which blocks are used.
constexpr int64_t kPlaceValues = 1024;

// True if the values are added in blocks. Only dimensions in which the target has stride 0 count: values meet only there.
inline bool sums_in_blocks(const Scatter& s) {
  if (!s.add || !is_floating(s.value.dtype)) return false;
  int64_t most = 1, places = 1;
  for (size_t d = 0; d < s.shape.size(); ++d)
    if (s.target.strides[d] == 0) most *= s.shape[d];
  for (const IndexOperand& i : s.indices) places *= i.bound;
  return most > kPlaceValues * places;
}

}  // namespace naru::ir
