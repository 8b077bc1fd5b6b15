// Checked arithmetic on sizes that users pass: RuntimeError with PyTorch's text if a result does not fit into int64. Use it for everything
// that becomes a size or a number of elements; product() of naru/dims.h is for sizes of existing tensors.
#pragma once

#include <cstdint>
#include <span>

namespace naru {

// The product of non-negative sizes. 0 if any size is 0, however large the others are.
int64_t checked_product(std::span<const int64_t> sizes);
int64_t times(int64_t a, int64_t b);
int64_t plus(int64_t a, int64_t b);
// offset + index * stride, wrapping around: empty tensors may have any strides, and their addresses are never used.
inline int64_t moved_by(int64_t offset, int64_t index, int64_t stride) noexcept {
  return static_cast<int64_t>(static_cast<uint64_t>(offset) + static_cast<uint64_t>(index) * static_cast<uint64_t>(stride));
}

}  // namespace naru
