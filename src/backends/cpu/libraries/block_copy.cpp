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

// target[i * target_step + j * item] = source[j * source_step + i * item], or back.
template <bool kThere>
void turn(char* source, int64_t source_step, int64_t item, int64_t rows, int64_t cols, char* target, int64_t target_step) {
  kThere ? transpose(source, source_step, item, rows, cols, target, target_step)
         : transpose(target, target_step, item, cols, rows, source, source_step);
}
// Runs of `bytes`.
template <bool kThere>
void copy_runs(char* source, int64_t source_step, int64_t count, int64_t bytes, char* target, int64_t target_step) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(kThere ? target + i * target_step : source + i * source_step, kThere ? source + i * source_step : target + i * target_step,
                static_cast<size_t>(bytes));
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
  const bool both = blocks.inner.size() == 2, rows_last = blocks.inner.back().dimension == 0;
  const bool by_position = strides[1] == 1 && is_dense(sizes, strides, 2, sizes[1]);
  const bool by_channel = is_dense(sizes, strides, 2, 1) && (!both || strides[1] == c.positions_);
  if (!both && rows_last) {
    if (!by_position || (sizes[1] != 1 && blocks.strides[1] != within) || !is_dense(sizes, blocks.strides, 2, within * sizes[1])) return {};
    c.kind_ = Kind::Rows;
  } else {
    if (!(by_channel || by_position) || !is_dense(sizes, blocks.strides, 2, within)) return {};
    if (!both)
      c.kind_ = by_channel ? Kind::Columns : Kind::ColumnsLast;
    else if (by_channel)
      c.kind_ = rows_last ? Kind::BothRowsLast : Kind::Both;
    else
      c.kind_ = rows_last ? Kind::BothLastRowsLast : Kind::BothLast;
  }
  c.rows_ = inner[0], c.columns_ = c.kind_ == Kind::Rows ? sizes[1] : inner[1];
  c.row_step_ = strides[0] * c.item_, c.column_step_ = strides[1] * c.item_;
  c.position_step_ = (by_channel ? 1 : sizes[1]) * c.item_;
  const int64_t block[2] = {c.rows_, c.columns_};
  for (size_t d = 0; d < 2; ++d) {
    c.counts_[d] = sizes[d] / block[d];
    c.array_steps_[d] = block[d] * strides[d] * c.item_;
    c.block_steps_[d] = blocks.strides[d] * c.item_;
  }
  return c;
}

size_t BlockCopy::scratch_bytes() const noexcept {
  return kind_ == Kind::Both || kind_ == Kind::BothRowsLast ? static_cast<size_t>(rows_ * columns_ * positions_ * item_) : 0;
}

template <bool kToBlocks>
void BlockCopy::block(char* array, char* blocks, char* scratch) const {
  const int64_t row = rows_ * item_, column = columns_ * item_, tile = row * columns_;
  switch (kind_) {
    case Kind::Columns:
      return turn<kToBlocks>(array, column_step_, item_, positions_, columns_, blocks, column);
    case Kind::ColumnsLast:
      return copy_runs<kToBlocks>(array, position_step_, positions_, column, blocks, column);
    case Kind::Rows:
      return turn<kToBlocks>(array, row_step_, item_, columns_ * positions_, rows_, blocks, row);
    case Kind::BothLast:
      for (int64_t p = 0; p < positions_; ++p)
        copy_runs<kToBlocks>(array + p * position_step_, row_step_, rows_, column, blocks + p * tile, column);
      return;
    case Kind::BothLastRowsLast:
      for (int64_t p = 0; p < positions_; ++p)
        turn<kToBlocks>(array + p * position_step_, row_step_, item_, columns_, rows_, blocks + p * tile, row);
      return;
    case Kind::Both:
    case Kind::BothRowsLast:
      break;
  }
  // The rows by the columns times positions, turned.
  const auto turn_all = [&] { turn<kToBlocks>(array, row_step_, item_, columns_ * positions_, rows_, scratch, row); };
  if constexpr (kToBlocks) turn_all();
  for (int64_t p = 0; p < positions_; ++p)
    if (kind_ == Kind::BothRowsLast)
      copy_runs<kToBlocks>(scratch + p * row, positions_ * row, columns_, row, blocks + p * tile, row);
    else
      turn<kToBlocks>(scratch + p * row, positions_ * row, item_, rows_, columns_, blocks + p * tile, column);
  if constexpr (!kToBlocks) turn_all();
}

template <bool kToBlocks>
void BlockCopy::run(const char* array, const char* blocks, char* scratch) const {
  for (int64_t a = 0; a < counts_[0]; ++a)
    for (int64_t b = 0; b < counts_[1]; ++b)
      block<kToBlocks>(const_cast<char*>(array) + a * array_steps_[0] + b * array_steps_[1],
                       const_cast<char*>(blocks) + a * block_steps_[0] + b * block_steps_[1], scratch);
}

template void BlockCopy::run<true>(const char*, const char*, char*) const;
template void BlockCopy::run<false>(const char*, const char*, char*) const;

}  // namespace naru::cpu
