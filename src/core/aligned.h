// Aligned memory. C's aligned_alloc does not exist everywhere, and its counterpart is not always free().
#pragma once

#include <cstddef>
#include <new>

namespace naru {

inline constexpr size_t kAlignment = 64;

// Returns null if there is no memory.
inline void* aligned_memory(size_t bytes, size_t boundary = kAlignment) noexcept {
  return ::operator new(bytes, std::align_val_t(boundary), std::nothrow);
}
inline void release_aligned(void* memory, size_t boundary = kAlignment) noexcept { ::operator delete(memory, std::align_val_t(boundary)); }

}  // namespace naru
