#include "ir/space.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "naru/error.h"

namespace naru::ir {

Space& Space::operator=(const Space& o) noexcept {
  rank = o.rank, count = o.count;
  std::copy(o.sizes, o.sizes + rank, sizes);
  for (int k = 0; k < count; ++k) {
    operands[k].data = o.operands[k].data, operands[k].item = o.operands[k].item;
    std::copy(o.operands[k].strides, o.operands[k].strides + rank, operands[k].strides);
  }
  return *this;
}

void Space::reset(std::span<const int64_t> shape) {
  rank = static_cast<int>(shape.size()), count = 0;
  if (rank > kMaxRank) throw RuntimeError("too many dimensions: wanted at most {}, got {}", kMaxRank, rank);
  for (int d = 0; d < rank; ++d) sizes[d] = shape[d];
}

void Space::add(const View& view) { add(static_cast<char*>(view.data), static_cast<int64_t>(size_of(view.dtype)), view.strides.data()); }

void Space::add(char* data, int64_t item, const int64_t* strides_in_elements) {
  Operand& o = operands[count++];
  o.data = data;
  o.item = item;
  for (int d = 0; d < rank; ++d) o.strides[d] = in_bytes(strides_in_elements[d], item);
}

int64_t Space::numel() const noexcept {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= sizes[d];
  return n;
}

void Space::drop_ones() {
  int kept = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    if (kept != d) {
      sizes[kept] = sizes[d];
      for (int k = 0; k < count; ++k) operands[k].strides[kept] = operands[k].strides[d];
    }
    ++kept;
  }
  rank = kept;
}

void Space::swap_dimensions(int a, int b) noexcept {
  std::swap(sizes[a], sizes[b]);
  for (int k = 0; k < count; ++k) std::swap(operands[k].strides[a], operands[k].strides[b]);
}

bool Space::order_by(int first) {
  // Should dimension a be further in than b? +1 yes, -1 no, 0 undecided. Operand `first` decides first, then those after it, then those before.
  const auto inner = [&](int a, int b) {
    for (int i = 0; i < count; ++i) {
      const Operand& o = operands[(first + i) % count];
      const int64_t s = std::llabs(o.strides[a]), t = std::llabs(o.strides[b]);
      if (s == 0 || t == 0 || s == t) continue;
      return s < t ? 1 : -1;
    }
    return 0;
  };
  bool moved = false;
  // Insertion sort: the order is not transitive, because operands may disagree.
  for (int d = 1; d < rank; ++d)
    for (int e = d; e > 0 && inner(e - 1, e) > 0; --e) {
      swap_dimensions(e - 1, e);
      moved = true;
    }
  return moved;
}

void Space::merge(int keep) {
  int kept = 0;  // the dimension that later ones are merged into, if possible
  for (int d = 1; d < rank; ++d) {
    bool can = d != rank - keep;
    for (int k = 0; can && k < count; ++k) can = operands[k].strides[kept] == operands[k].strides[d] * sizes[d];
    if (can) {
      sizes[kept] *= sizes[d];
    } else {
      ++kept;
      sizes[kept] = sizes[d];
    }
    for (int k = 0; k < count; ++k) operands[k].strides[kept] = operands[k].strides[d];
  }
  if (rank > 0) rank = kept + 1;
}

bool Space::flat(int k) const noexcept {
  int64_t expected = operands[k].item;
  for (int d = rank - 1; d >= 0; --d) {
    if (operands[k].strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Space::repeats_one(int k) const noexcept {
  for (int d = 0; d < rank; ++d)
    if (operands[k].strides[d] != 0) return false;
  return true;
}

}  // namespace naru::ir
