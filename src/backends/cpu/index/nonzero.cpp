// The indices of a mask's true elements. Blocks run independently, after counting how many true elements come before each.
#include <algorithm>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"

namespace naru::cpu {
namespace {

void count_blocks(const ir::Nonzero& op) {
  const auto* const mask = static_cast<const uint8_t*>(op.mask.data);
  auto* const ends = static_cast<int64_t*>(op.ends.data);
  const int64_t n = product(op.shape), blocks = op.blocks(), step = op.ends.strides.back();
  split(blocks, static_cast<double>(n) * 0.1, 1, [=](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t begin = b * ir::Nonzero::kBlock;
      int64_t count = 0;
      for (int64_t i = begin; i < std::min(begin + ir::Nonzero::kBlock, n); ++i) count += mask[i] != 0;
      ends[b * step] = count;
    }
  });
  for (int64_t b = 1; b < blocks; ++b) ends[b * step] += ends[(b - 1) * step];
}

}  // namespace

void run(const ir::Nonzero& op) {
  if (!op.finds) return count_blocks(op);
  const auto* const mask = static_cast<const uint8_t*>(op.mask.data);
  const auto* const ends = static_cast<const int64_t*>(op.ends.data);
  auto* const positions = static_cast<int64_t*>(op.positions.data);
  const int64_t n = product(op.shape), step = op.ends.strides.back();
  split(op.blocks(), static_cast<double>(n), 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t begin = b * ir::Nonzero::kBlock;
      int64_t* to = positions + (b ? ends[(b - 1) * step] : 0) * op.positions.strides[0];
      for (int64_t i = begin; i < std::min(begin + ir::Nonzero::kBlock, n); ++i) {
        if (!mask[i]) continue;
        int64_t rest = i;
        for (size_t d = op.shape.size(); d-- > 0; rest /= op.shape[d])
          to[static_cast<int64_t>(d) * op.positions.strides[1]] = d == 0 ? rest : rest % op.shape[d];
        to += op.positions.strides[0];
      }
    }
  });
}

}  // namespace naru::cpu
