// Space: an iteration space of strided operands, whose dimensions can be dropped, reordered and merged. Kernels of every device use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/instruction.h"

namespace naru::ir {

constexpr int kMaxRank = 64;
constexpr int kMaxOperands = kMaxInputs + kMaxOutputs;

struct Operand {
  char* data;
  int64_t item;               // bytes of an element
  int64_t strides[kMaxRank];  // bytes
};

// A stride in bytes. The stride of a dimension of size 1 is arbitrary, so the product may wrap.
inline int64_t in_bytes(int64_t stride, int64_t item) noexcept {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(item));
}

// A space and its operands. Left uninitialised on purpose: only the first `rank` dimensions of the first `count` operands are used.
struct Space {
  int rank = 0, count = 0;
  int64_t sizes[kMaxRank];
  Operand operands[kMaxOperands];

  Space() noexcept {}
  // Throws RuntimeError for more than kMaxRank dimensions.
  explicit Space(std::span<const int64_t> shape) { reset(shape); }
  Space(const Space& o) noexcept { *this = o; }
  Space& operator=(const Space& o) noexcept;  // copies only what is used
  // Sets these dimensions, and removes all operands.
  void reset(std::span<const int64_t> shape);
  void add(const View& view);
  void add(char* data, int64_t item, const int64_t* strides_in_elements);
  int64_t numel() const noexcept;

  // Removes dimensions of size 1.
  void drop_ones();
  // Orders dimensions so that the first operands' strides decrease from outermost to innermost; operand `first` has priority. Returns false if
  // the order was already so.
  bool order_by(int first);
  // Merges adjacent dimensions that are contiguous with each other in every operand. `keep`: this many innermost ones are not merged with the
  // rest.
  void merge(int keep = 0);
  void swap_dimensions(int a, int b) noexcept;
  // True if operand k is contiguous over the whole space.
  bool flat(int k) const noexcept;
  bool repeats_one(int k) const noexcept;  // all strides 0
};

}  // namespace naru::ir
