// Sums of floating-point values that go to equal places, in the order of ir/place_sums.h: who adds tells of every value that was added, and a place whose block
// is full begins again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "host/moves.h"
#include "ir/place_sums.h"

namespace naru::host {

// target[e] += value[e], in order. `to`: what indices add to each element's address, or null.
using AddRun = void (*)(const char* value, int64_t value_step, char* target, int64_t target_step, const int64_t* to, int64_t n);

// Places of n elements each, `step` bytes apart. The chain of a place's block stands at the place itself; where it is full, it is added to what the level
// above has, and the place holds -0, which changes no sum.
class PlaceSums {
 public:
  PlaceSums(AddRun add, DType type, int64_t step, int64_t n);

  // A value was added at `place`.
  void added(char* place);
  // The block at `place` is full; for who counts himself.
  void full(char* place);
  // Puts the sums down. Nothing is known afterwards.
  void finish();

 private:
  struct Level {
    std::vector<char> sum;
    int64_t count = 0;
  };
  struct Place {
    char* at;
    uint8_t in_block = 0;
    std::vector<Level> levels;
  };
  Place& place_of(char* at);
  void rehash(size_t size);
  void push(Place& p, size_t level, const char* values, int64_t step);
  void clear(char* at, int64_t step) const;

  AddRun add_;
  int64_t item_, step_, n_;
  std::vector<Place> places_;
  std::vector<uint32_t> table_;  // numbers of places + 1, by the address's hash
};

// The additions of a Scatter whose sums are in blocks (ir::sums_in_blocks).
void add_in_blocks(const Moves& m, const ir::Scatter& s, AddRun add);

}  // namespace naru::host
