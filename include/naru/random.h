// Random numbers: Philox, whose counter is the element's index, so that the same seed gives the same bits on every device; or, where the program
// asks for it, those of PyTorch's cpu.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "naru/standard.h"

namespace naru {

// What random numbers are made by. PyTorch: by the host, in order, as PyTorch's cpu makes them, on every device.
enum class RandomAlgorithm : uint8_t { Philox, PyTorch };
// For the whole process; before, it is what NARU_RANDOM says ("philox", "pytorch"), else Philox.
void set_random_algorithm(RandomAlgorithm algorithm) noexcept;
// Throws ValueError where NARU_RANDOM says something else.
RandomAlgorithm random_algorithm();

// Matsumoto and Nishimura's MT19937, with the second of a pair of normal numbers that waits.
struct MersenneTwister {
  static constexpr uint32_t kWords = 624;
  explicit MersenneTwister(uint64_t seed);
  uint32_t next();
  std::array<uint32_t, kWords> words;
  uint32_t at = kWords;  // the word that comes next; kWords: all are made anew first
  bool has_normal = false;
  double normal = 0;
};

// A seed and how many draws were made from it. Copies draw the same numbers.
class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721u) : seed_(seed) {}
  Generator(const Generator& o);
  Generator& operator=(const Generator& o);
  void manual_seed(uint64_t seed) { set_state(seed, 0); }
  uint64_t initial_seed() const { return seed_; }
  // Seeds it with what nobody can foresee, from the system; returns the seed, below 2^63.
  uint64_t seed();
  // Takes one draw (of any number of elements), or several: (key, offset of the first).
  std::pair<uint64_t, uint64_t> draw(uint64_t count = 1);
  uint64_t offset() const { return offset_; }
  void set_state(uint64_t seed, uint64_t offset);
  // Of RandomAlgorithm::PyTorch, made of the seed when it is first asked for. Not locked: for one who has the generator to himself (ops/host_draws.h).
  MersenneTwister& twister();
  // The same for all: a copy of it, and another in its place.
  MersenneTwister twister_state();
  void set_twister(uint64_t seed, const MersenneTwister& state);

 private:
  uint64_t seed_, offset_ = 0;
  std::shared_ptr<MersenneTwister> twister_;  // its own
};

// The generator used where none is named: one for all devices, so that moving a program to another device keeps its numbers.
Generator& default_generator();
void manual_seed(uint64_t seed);

}  // namespace naru
