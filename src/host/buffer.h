// Memory for the length of an instruction.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace naru::host {

struct Release {
  void operator()(char* p) const noexcept { std::free(p); }
};
using Buffer = std::unique_ptr<char, Release>;

// 64-byte aligned, with room for a vector behind the end. Throws std::bad_alloc.
inline Buffer make_buffer(int64_t bytes) {
  Buffer b(static_cast<char*>(std::aligned_alloc(64, (static_cast<size_t>(bytes) + 127) / 64 * 64)));
  if (!b) throw std::bad_alloc();
  return b;
}

}  // namespace naru::host
