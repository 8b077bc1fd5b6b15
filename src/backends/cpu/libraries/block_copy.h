// Copies between an array with strides and one in blocks of channels, as oneDNN's convolutions want their operands: by transposes of pieces that the
// first cache holds. (The library's own copies of weights gather numbers from lines far apart: 1 GB/s for 512 channels of 3 x 3.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "naru/dims.h"

namespace naru::cpu {

// Sizes padded to whole blocks, strides between blocks, in elements; the blocks within, the innermost last.
struct BlockLayout {
  struct Block {
    int64_t size;
    size_t dimension;
  };
  Dims sizes, strides;
  std::vector<Block> inner;
};

class BlockCopy {
 public:
  // The array is (n, channels, positions...) with one block of channels, or (out, in, positions...) with blocks of in and out, in either order; its
  // positions are dense. nullopt for others, and where blocks are not full.
  static std::optional<BlockCopy> make(const Dims& sizes, const Dims& strides, const BlockLayout& blocks, size_t item);

  // Both may run on any thread.
  void to_blocks(const char* array, char* blocks, char* scratch) const;
  void from_blocks(const char* blocks, char* array, char* scratch) const;
  size_t scratch_bytes() const noexcept;

 private:
  template <class F>
  void each_block(F f) const;

  int64_t item_ = 4;
  int64_t counts_[2] = {1, 1};                         // blocks along the first two dimensions
  int64_t array_steps_[2] = {}, block_steps_[2] = {};  // bytes between them
  int64_t rows_ = 1, columns_ = 1;                     // elements of a block along the first and the second dimension
  int64_t row_step_ = 0, column_step_ = 0;             // bytes between these in the array
  int64_t positions_ = 1;
  bool both_ = false, rows_last_ = false;  // blocks of both dimensions, those of the first within
};

}  // namespace naru::cpu
