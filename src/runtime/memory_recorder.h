// MemoryRecorder: a history of the memory that a CachingAllocator gives and takes back, kept under the allocator's lock. Without a history it costs a
// look at a flag.
#pragma once

#include <chrono>
#include <unordered_map>

#include "runtime/allocator.h"
#include "runtime/block.h"

namespace naru::runtime {

class MemoryRecorder {
 public:
  void begin();
  void forget() noexcept;
  // A block was taken, or is given back (bytes < 0). `stats`: after it.
  void note(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept {
    if (on_) [[unlikely]]
      record(block, bytes, stats);
  }
  // A slab was had of the device, or goes back (bytes < 0).
  void note_slab(const void* data, int64_t bytes) noexcept;
  // A block that was in use when it began.
  void note_earlier(const Block& block, size_t allocated, size_t reserved);
  // `used`: the blocks in use, by their address. What memory served is known best when it is given back.
  MemoryRecord history(const std::unordered_map<void*, Block*>& used) const;

 private:
  void record(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept;
  double seconds() const;

  bool on_ = false;
  std::chrono::steady_clock::time_point began_;
  MemoryRecord history_;
};

}  // namespace naru::runtime
