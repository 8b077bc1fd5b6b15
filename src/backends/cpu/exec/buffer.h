// Temporary memory for one instruction.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>

#include "core/aligned.h"

namespace naru::cpu {

// Large buffers are kept for the next instruction, within limits: the system's pages cost more than many an instruction.
void* take_buffer(size_t& bytes);  // rounds `bytes` up to what it gives; null if there is no memory
void give_buffer(void* memory, size_t bytes) noexcept;

struct Release {
  size_t bytes = 0;
  void operator()(char* p) const noexcept { give_buffer(p, bytes); }
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
  size_t bytes = (bytes_of(sizes, item) + 127) / 64 * 64;
  char* const memory = static_cast<char*>(take_buffer(bytes));
  if (!memory) throw std::bad_alloc();
  return Buffer(memory, Release{bytes});
}

}  // namespace naru::cpu
