// Moves: the plain and the indexed operand of a gather or scatter over one shape, and the indices that shift the indexed one.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/exec/layout.h"
#include "ir/instruction.h"
#include "naru/error.h"

namespace naru::cpu {

// Number of elements whose addresses are computed at once.
constexpr int64_t kIndexBlock = 1024;

struct Moves {
  Space space;  // operands: plain, indexed, then the index tensors
  const std::vector<ir::IndexOperand>& indices;
  int64_t item;
  int64_t run = 1;  // elements of the innermost dimension over which no index changes
  bool inner_run = false;

  Moves(const Dims& shape, const ir::View& plain, const ir::View& indexed, const std::vector<ir::IndexOperand>& list)
      : space(std::span<const int64_t>(shape)), indices(list), item(static_cast<int64_t>(size_of(plain.dtype))) {
    if (list.size() + 2 > kMaxOperands) throw RuntimeError("index: wanted at most {} index tensors, got {}", kMaxOperands - 2, list.size());
    space.add(plain);
    space.add(indexed);
    for (const auto& i : list) space.add(i.positions);
    space.drop_ones();
    space.merge();
    if (space.rank == 0) {
      space.rank = 1, space.sizes[0] = 1;
      for (int k = 0; k < space.count; ++k) space.operands[k].strides[0] = space.operands[k].item;
    }
    inner_run = space.rank > 1;
    for (int k = 2; k < space.count; ++k) inner_run &= space.operands[k].strides[space.rank - 1] == 0;
    if (inner_run) run = space.sizes[space.rank - 1];
  }
  int last() const { return space.rank - 1; }
  int64_t moved(int64_t position, int i) const { return (position < 0 ? position + indices[i].bound : position) * indices[i].step * item; }
  // Bytes that the indices add at the walk's current row.
  int64_t shift(const Walk& walk) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < indices.size(); ++i)
      bytes += moved(*reinterpret_cast<const int64_t*>(walk.at(static_cast<int>(i) + 2)), static_cast<int>(i));
    return bytes;
  }
  // The same for n elements of the innermost dimension.
  void shifts(const Walk& walk, int64_t first, int64_t n, int64_t* bytes) const {
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t step = space.operands[i + 2].strides[last()];
      const char* at = walk.at(static_cast<int>(i) + 2) + first * step;
      const int64_t bound = indices[i].bound, scale = indices[i].step * item;
      for (int64_t e = 0; e < n; ++e) {
        const int64_t v = *reinterpret_cast<const int64_t*>(at + e * step);
        bytes[e] = (i ? bytes[e] : 0) + (v < 0 ? v + bound : v) * scale;
      }
    }
    if (indices.empty()) std::fill(bytes, bytes + n, 0);
  }
};

// True for one index with contiguous positions and a plain operand that is contiguous, or (if that is allowed) one element.
inline bool is_one_line(const Moves& m, bool or_one = false) {
  const int64_t step = m.space.operands[0].strides[m.last()];
  return m.indices.size() == 1 && (m.item == 4 || m.item == 8) && (step == m.item || (or_one && step == 0)) &&
         m.space.operands[2].strides[m.last()] == 8;
}

}  // namespace naru::cpu
