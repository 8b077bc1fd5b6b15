// Temporary memory for one instruction.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>

#include "core/aligned.h"

namespace naru::cpu {

struct Release {
  void operator()(char* p) const noexcept { release_aligned(p); }
};
using Buffer = std::unique_ptr<char, Release>;

// Bytes for product(sizes) items. Throws std::bad_alloc if the result does not fit into int64: expanded operands can have more elements
// than memory can hold.
inline size_t bytes_of(std::initializer_list<int64_t> sizes, size_t item) {
  auto bytes = static_cast<int64_t>(item);
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes)) throw std::bad_alloc();
  return static_cast<size_t>(bytes);
}

// Memory of bytes_of(sizes, item), 64-byte aligned, padded so that a full vector may be accessed past the end. Throws std::bad_alloc.
inline Buffer make_buffer(std::initializer_list<int64_t> sizes, size_t item) {
  Buffer b(static_cast<char*>(aligned_memory((bytes_of(sizes, item) + 127) / 64 * 64)));
  if (!b) throw std::bad_alloc();
  return b;
}

}  // namespace naru::cpu
