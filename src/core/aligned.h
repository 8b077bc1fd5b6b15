// Memory on a boundary: C's aligned_alloc is not everywhere, and where it is, free() is not always its counterpart.
#pragma once

#include <cstddef>
#include <new>

namespace naru {

inline constexpr size_t kAlignment = 64;

// Null where there is none.
inline void* aligned_memory(size_t bytes, size_t boundary = kAlignment) noexcept {
  return ::operator new(bytes, std::align_val_t(boundary), std::nothrow);
}
inline void release_aligned(void* memory, size_t boundary = kAlignment) noexcept { ::operator delete(memory, std::align_val_t(boundary)); }

}  // namespace naru
