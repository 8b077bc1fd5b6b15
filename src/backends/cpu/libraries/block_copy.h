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
  // The array is (n, channels, positions...) with blocks of channels, or (out, in, positions...) with blocks of both, in either order, or of out
  // alone. Its positions are dense, channel by channel, or its channels are, position by position. nullopt for others, and where blocks are not full.
  static std::optional<BlockCopy> make(const Dims& sizes, const Dims& strides, const BlockLayout& blocks, size_t item);

  // Both may run on any thread.
  void to_blocks(const char* array, char* blocks, char* scratch) const { run<true>(array, blocks, scratch); }
  void from_blocks(const char* blocks, char* array, char* scratch) const { run<false>(array, blocks, scratch); }
  size_t scratch_bytes() const noexcept;

 private:
  enum class Kind : uint8_t {
    Columns,          // blocks of columns: each is turned
    ColumnsLast,      // the same of an array whose columns are dense: runs
    Rows,             // blocks of rows of such an array: each is turned
    Both,             // blocks of both: turned, then sorted by position
    BothRowsLast,     // the same, with the rows within
    BothLast,         // blocks of both, of an array whose columns are dense: runs
    BothLastRowsLast  // the same, with the rows within: each position is turned
  };
  // The array may be const where it is read, and so may the blocks.
  template <bool kToBlocks>
  void run(const char* array, const char* blocks, char* scratch) const;
  template <bool kToBlocks>
  void block(char* array, char* blocks, char* scratch) const;

  Kind kind_ = Kind::Columns;
  int64_t item_ = 4;
  int64_t counts_[2] = {1, 1};                         // blocks along the first two dimensions
  int64_t array_steps_[2] = {}, block_steps_[2] = {};  // bytes between them
  int64_t rows_ = 1, columns_ = 1;                     // elements of a block along the first and the second dimension
  int64_t row_step_ = 0, column_step_ = 0;             // bytes between these in the array
  int64_t positions_ = 1, position_step_ = 0;
};

}  // namespace naru::cpu
