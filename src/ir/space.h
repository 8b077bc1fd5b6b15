// Space: an iteration space of strided operands, with dimensions dropped, ordered and merged. Kernels of every device are laid out by it.
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

// A stride in bytes. Where a dimension has one place, the stride may be any number, and may wrap.
inline int64_t in_bytes(int64_t stride, int64_t item) noexcept {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(item));
}

// A space and its operands. Left uninitialised on purpose: only the first `rank` dimensions of the first `count`
// operands are in use.
struct Space {
  int rank = 0, count = 0;
  int64_t sizes[kMaxRank];
  Operand operands[kMaxOperands];

  Space() noexcept {}
  // Throws RuntimeError for more than kMaxRank dimensions.
  explicit Space(std::span<const int64_t> shape) { reset(shape); }
  Space(const Space& o) noexcept { *this = o; }
  Space& operator=(const Space& o) noexcept;  // only what is in use
  // These dimensions, no operands.
  void reset(std::span<const int64_t> shape);
  void add(const View& view);
  void add(char* data, int64_t item, const int64_t* strides_in_elements);
  int64_t numel() const noexcept;

  // Removes dimensions of size 1.
  void drop_ones();
  // Orders dimensions so that the first operands' strides fall from the outermost to the innermost (`first`: looked at
  // before the others). False if they stand so already.
  bool order_by(int first);
  // Merges dimensions that every operand walks through without a step. `keep`: that many innermost ones stay apart from
  // the rest.
  void merge(int keep = 0);
  void swap_dimensions(int a, int b) noexcept;
  // Does operand k run through the whole space without a step?
  bool flat(int k) const noexcept;
  bool repeats_one(int k) const noexcept;  // all strides 0
};

}  // namespace naru::ir
