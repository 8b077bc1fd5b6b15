// Random numbers: Philox, whose counter is the element's index, so that the same seed gives the same bits on every device.
#pragma once

#include <cstdint>
#include <utility>

namespace naru {

// A seed and how many draws were made from it. Copies draw the same numbers.
class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721u) : seed_(seed) {}
  Generator(const Generator& o) : seed_(o.seed_), offset_(o.offset_) {}
  Generator& operator=(const Generator& o) {
    seed_ = o.seed_, offset_ = o.offset_;
    return *this;
  }
  void manual_seed(uint64_t seed) { set_state(seed, 0); }
  uint64_t initial_seed() const { return seed_; }
  // Seeds it with what nobody can foresee, from the system; returns the seed, below 2^63.
  uint64_t seed();
  // Takes one draw (of any number of elements), or several: (key, offset of the first).
  std::pair<uint64_t, uint64_t> draw(uint64_t count = 1);
  uint64_t offset() const { return offset_; }
  void set_state(uint64_t seed, uint64_t offset);

 private:
  uint64_t seed_, offset_ = 0;
};

// The generator used where none is named: one for all devices, so that moving a program to another device keeps its numbers.
Generator& default_generator();
void manual_seed(uint64_t seed);

}  // namespace naru
