// The one order in which every device adds up what goes to equal places (a Scatter that adds floating-point values).
//
// Where values are many for the places there are, what goes to a place is, in the order of the values, a row of blocks of kPlaceBlock values, the first of
// which has what stood at the place in front. A block is a chain, and what the blocks' chains end with is a row that is added up in the same way. So up to
// kPlaceBlock values are added one after the other, and more are work for as many items as they have blocks. Else they are one chain, whatever their number:
// the shapes alone say which. Integers wrap around, whatever their order.
#pragma once

#include "ir/instruction.h"

namespace naru::ir {

constexpr int64_t kPlaceBlock = 256;

// Values for each place, on average, from which there are blocks.
constexpr int64_t kPlaceValues = 1024;

// Whether a place's values are added in blocks: only over dimensions in which the target stays do values meet.
inline bool sums_in_blocks(const Scatter& s) {
  if (!s.add || !is_floating(s.value.dtype)) return false;
  int64_t most = 1, places = 1;
  for (size_t d = 0; d < s.shape.size(); ++d)
    if (s.target.strides[d] == 0) most *= s.shape[d];
  for (const IndexOperand& i : s.indices) places *= i.bound;
  return most > kPlaceValues * places;
}

}  // namespace naru::ir
