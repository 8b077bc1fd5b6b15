#include "backends/cpu/libraries/block_copy.h"

#include <cstring>

#include "backends/cpu/exec/transpose.h"

namespace naru::cpu {
namespace {

// True if the dimensions from `first` on lie densely, in order, `step` elements apart.
bool is_dense(const Dims& sizes, const Dims& strides, size_t first, int64_t step) {
  for (size_t d = sizes.size(); d-- > first; step *= sizes[d])
    if (sizes[d] != 1 && strides[d] != step) return false;
  return true;
}

}  // namespace

std::optional<BlockCopy> BlockCopy::make(const Dims& sizes, const Dims& strides, const BlockLayout& blocks, size_t item) {
  if (sizes.size() < 3 || !(blocks.sizes == sizes) || blocks.inner.empty() || blocks.inner.size() > 2) return {};
  BlockCopy c;
  c.item_ = static_cast<int64_t>(item);
  for (size_t d = 2; d < sizes.size(); ++d) c.positions_ *= sizes[d];
  int64_t inner[2] = {1, 1}, within = 1;
  for (const BlockLayout::Block& b : blocks.inner) {
    if (b.dimension > 1 || inner[b.dimension] != 1 || sizes[b.dimension] % b.size != 0) return {};
    inner[b.dimension] = b.size, within *= b.size;
  }
  c.both_ = blocks.inner.size() == 2;
  c.rows_last_ = c.both_ && blocks.inner.back().dimension == 0;
  if (inner[1] == 1 || !is_dense(sizes, strides, 2, 1) || !is_dense(sizes, blocks.strides, 2, within)) return {};
  if (c.both_ && strides[1] != c.positions_) return {};
  c.rows_ = inner[0], c.columns_ = inner[1];
  c.row_step_ = strides[0] * c.item_, c.column_step_ = strides[1] * c.item_;
  for (size_t d = 0; d < 2; ++d) {
    c.counts_[d] = sizes[d] / inner[d];
    c.array_steps_[d] = inner[d] * strides[d] * c.item_;
    c.block_steps_[d] = blocks.strides[d] * c.item_;
  }
  return c;
}

size_t BlockCopy::scratch_bytes() const noexcept { return both_ ? static_cast<size_t>(rows_ * columns_ * positions_ * item_) : 0; }

template <class F>
void BlockCopy::each_block(F f) const {
  for (int64_t a = 0; a < counts_[0]; ++a)
    for (int64_t b = 0; b < counts_[1]; ++b) f(a * array_steps_[0] + b * array_steps_[1], a * block_steps_[0] + b * block_steps_[1]);
}

// Of both dimensions: the block's rows by its columns times positions are transposed first, then sorted by position.
void BlockCopy::to_blocks(const char* array, char* blocks, char* scratch) const {
  const int64_t row = rows_ * item_, tile = row * columns_;
  each_block([&](int64_t from, int64_t to) {
    if (!both_) return transpose(array + from, column_step_, item_, positions_, columns_, blocks + to, columns_ * item_);
    char* const turned = rows_last_ && positions_ == 1 ? blocks + to : scratch;
    transpose(array + from, row_step_, item_, columns_ * positions_, rows_, turned, row);
    if (turned != scratch) return;
    for (int64_t p = 0; p < positions_; ++p) {
      if (!rows_last_) {
        transpose(scratch + p * row, positions_ * row, item_, rows_, columns_, blocks + to + p * tile, columns_ * item_);
        continue;
      }
      for (int64_t c = 0; c < columns_; ++c)
        std::memcpy(blocks + to + p * tile + c * row, scratch + (c * positions_ + p) * row, static_cast<size_t>(row));
    }
  });
}

void BlockCopy::from_blocks(const char* blocks, char* array, char* scratch) const {
  const int64_t row = rows_ * item_, tile = row * columns_;
  each_block([&](int64_t to, int64_t from) {
    if (!both_) return transpose(blocks + from, columns_ * item_, item_, columns_, positions_, array + to, column_step_);
    for (int64_t p = 0; p < positions_; ++p) {
      if (!rows_last_) {
        transpose(blocks + from + p * tile, columns_ * item_, item_, columns_, rows_, scratch + p * row, positions_ * row);
        continue;
      }
      for (int64_t c = 0; c < columns_; ++c)
        std::memcpy(scratch + (c * positions_ + p) * row, blocks + from + p * tile + c * row, static_cast<size_t>(row));
    }
    transpose(scratch, row, item_, rows_, columns_ * positions_, array + to, row_step_);
  });
}

}  // namespace naru::cpu
