// Arithmetic on sizes that users give: RuntimeError with PyTorch's text where a result does not fit into int64. Whatever becomes a size, or the
// number of a tensor's elements, passes here; product() of naru/dims.h is for the sizes of tensors that exist.
#pragma once

#include <cstdint>
#include <span>

namespace naru {

// The product of sizes, none of them negative. 0 where one of them is, however large the others are.
int64_t checked_product(std::span<const int64_t> sizes);
int64_t times(int64_t a, int64_t b);
int64_t plus(int64_t a, int64_t b);
// offset + index * stride, wrapping around: tensors without elements may have any strides, and their addresses are never used.
inline int64_t moved_by(int64_t offset, int64_t index, int64_t stride) noexcept {
  return static_cast<int64_t>(static_cast<uint64_t>(offset) + static_cast<uint64_t>(index) * static_cast<uint64_t>(stride));
}

}  // namespace naru
