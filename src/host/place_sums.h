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

// Bounds of how many values go to a place: counts by hashes of addresses.
class PlaceCounts {
 public:
  explicit PlaceCounts(int64_t rows);
  void count(const char* place) { most_ = std::max(most_, ++counts_[bucket(place)]); }
  bool crowded() const;
  bool crowded(const char* place) const;

 private:
  size_t bucket(const char* place) const {
    return static_cast<size_t>(reinterpret_cast<uintptr_t>(place) * uint64_t{0x9e3779b97f4a7c15} >> shift_);
  }
  int shift_;
  uint32_t most_ = 0;
  std::vector<uint32_t> counts_;
};

// The additions of a Scatter, if values meet so often that blocks make a difference; else false, and nothing is done.
bool add_in_blocks(const Moves& m, const ir::Scatter& s, AddRun add);

}  // namespace naru::host
