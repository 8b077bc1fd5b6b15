// MemoryRecorder: the history of a CachingAllocator's allocations and releases, protected by the allocator's lock. Without a history it
// costs one check of a flag.
#pragma once

#include <chrono>
#include <unordered_map>

#include "runtime/memory/allocator.h"
#include "runtime/memory/block.h"

namespace naru::runtime {

class MemoryRecorder {
 public:
  void begin();
  void forget() noexcept;
  // A block was allocated, or is being released (bytes < 0). `stats`: the values after it.
  void note(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept {
    if (on_) [[unlikely]]
      record(block, bytes, stats);
  }
  // A slab was allocated from the device, or is being returned (bytes < 0).
  void note_slab(const void* data, int64_t bytes) noexcept;
  // A block that was in use when the history began.
  void note_earlier(const Block& block, size_t allocated, size_t reserved);
  // `used`: the blocks in use, by address. A block's memory category is known best when it is released.
  MemoryRecord history(const std::unordered_map<void*, Block*>& used) const;

 private:
  void record(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept;
  double seconds() const;

  bool on_ = false;
  std::chrono::steady_clock::time_point began_;
  MemoryRecord history_;
};

}  // namespace naru::runtime
