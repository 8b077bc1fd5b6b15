// Random numbers by Philox, with the element's index as counter, so the same seed gives the same bits on every device; optionally PyTorch's
// CPU generator instead.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "naru/standard.h"

namespace naru {

// The generator algorithm. PyTorch: the host generates the numbers sequentially, as PyTorch does on cpu, for every device.
enum class RandomAlgorithm : uint8_t { Philox, PyTorch };
// For the whole process. The default is the environment variable NARU_RANDOM ("philox" or "pytorch"), else Philox.
void set_random_algorithm(RandomAlgorithm algorithm) noexcept;
// Throws ValueError if NARU_RANDOM has another value.
RandomAlgorithm random_algorithm();

// Matsumoto and Nishimura's MT19937, with a cached second normal of a Box-Muller pair.
struct MersenneTwister {
  static constexpr uint32_t kWords = 624;
  explicit MersenneTwister(uint64_t seed);
  uint32_t next();
  std::array<uint32_t, kWords> words;
  uint32_t at = kWords;  // index of the next word; kWords: generate all words first
  bool has_normal = false;
  double normal = 0;
};

// A seed and the number of draws made. Copies draw the same numbers.
class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721u) : seed_(seed) {}
  Generator(const Generator& o);
  Generator& operator=(const Generator& o);
  void manual_seed(uint64_t seed) { set_state(seed, 0); }
  uint64_t initial_seed() const { return seed_; }
  // Seeds from the operating system's entropy; returns the seed, below 2^63.
  uint64_t seed();
  // Reserves `count` draws, each for any number of elements. Returns (key, offset of the first).
  std::pair<uint64_t, uint64_t> draw(uint64_t count = 1);
  uint64_t offset() const { return offset_; }
  void set_state(uint64_t seed, uint64_t offset);
  // For RandomAlgorithm::PyTorch; seeded at first use. Not thread-safe: the caller must own the generator (ops/random/host_draws.h).
  MersenneTwister& twister();
  // Thread-safe: a copy of the twister, and replacing it.
  MersenneTwister twister_state();
  void set_twister(uint64_t seed, const MersenneTwister& state);

 private:
  uint64_t seed_, offset_ = 0;
  std::shared_ptr<MersenneTwister> twister_;  // never shared between generators
};

// The generator used if none is given. There is one for all devices, so moving a program to another device keeps its random numbers.
Generator& default_generator();
void manual_seed(uint64_t seed);

}  // namespace naru
