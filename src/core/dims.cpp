#include "naru/dims.h"

#include <cstring>

#include "naru/error.h"

#include <fmt/ranges.h>

namespace naru {

void Dims::grow(size_t n) {
  const size_t capacity = n < 16 ? 16 : n * 2;
  auto* grown = new int64_t[capacity];
  std::memcpy(grown, data(), size_ * sizeof(int64_t));
  if (on_heap()) free_heap();
  entries_.heap = grown;
  capacity_ = static_cast<uint32_t>(capacity);
}
void Dims::free_heap() noexcept { delete[] entries_.heap; }

std::string Dims::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

int64_t product(std::span<const int64_t> dims) noexcept {
  uint64_t n = 1;  // unsigned: it may wrap around before a size of 0 makes it 0
  for (int64_t d : dims) n *= static_cast<uint64_t>(d);
  return static_cast<int64_t>(n);
}

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides;
  strides.resize(sizes.size());
  int64_t step = 1;
  bool overflow = false;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (overflow) throw RuntimeError("Stride calculation overflowed (sizes [{}])", fmt::format("{}", fmt::join(sizes, ", ")));
    strides[i] = step;
    overflow = __builtin_mul_overflow(step, sizes[i] > 0 ? sizes[i] : 1, &step);
  }
  return strides;
}

Dims broadcast_shapes(const Dims& a, const Dims& b) {
  const Dims &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = shorter.size(); i-- > 0;) {
    int64_t &to = out[shift + i], from = shorter[i];
    if (to == from || from == 1) continue;
    if (to == 1) {
      to = from;
    } else {
      throw RuntimeError("The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {} (shapes {} and {})",
                         a[a.size() - (shorter.size() - i)], b[b.size() - (shorter.size() - i)], shift + i, a.str(), b.str());
    }
  }
  return out;
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t n = rank == 0 ? 1 : rank;
  if (dim < -n || dim >= n) throw IndexError("Dimension out of range (expected to be in range of [{}, {}], but got {})", -n, n - 1, dim);
  return dim < 0 ? dim + n : dim;
}

}  // namespace naru
