// MemoryRecorder: a history of the memory that a CachingAllocator gives and takes back, kept under the allocator's lock. Without a history it costs a
// look at a flag.
#pragma once

#include <chrono>
#include <new>
#include <unordered_map>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/block.h"

namespace naru::runtime {

class MemoryRecorder {
 public:
  void begin() {
    forget();
    on_ = true;
    began_ = std::chrono::steady_clock::now();
  }
  void forget() noexcept {
    on_ = false;
    history_ = {};
  }
  // A block was taken, or is given back (bytes < 0). `stats`: after it.
  void note(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept {
    if (!on_) [[likely]]
      return;
    keep([&] {
      const Storage* const s = block.holder;
      history_.events.push_back({seconds(), bytes, block.number, stats.allocated(), stats.reserved(), s ? s->origin : Origin(),
                                 s ? s->role.load(std::memory_order_relaxed) : MemoryRole::Other, block.data});
    });
  }
  // A slab was had of the device, or goes back (bytes < 0).
  void note_slab(const void* data, int64_t bytes) noexcept {
    if (!on_) [[likely]]
      return;
    keep([&] { history_.slabs.push_back({seconds(), bytes, data}); });
  }
  // What was there when it began: blocks in the order of their numbers.
  void note_earlier(const Block& block, size_t allocated, size_t reserved) {
    history_.events.push_back({0, static_cast<int64_t>(block.used), block.number, allocated, reserved,
                               block.holder ? block.holder->origin : Origin(), MemoryRole::Other, block.data});
  }
  // `used`: the blocks in use, by their address. What memory served is known best when it is given back.
  template <class Used>
  MemoryRecord history(const Used& used) const {
    MemoryRecord out = history_;
    std::unordered_map<uint64_t, MemoryRole> roles;
    for (const MemoryEvent& e : out.events)
      if (e.bytes < 0) roles[e.number] = e.role;
    for (const auto& [data, block] : used)
      if (block->holder) roles[block->number] = block->holder->role.load(std::memory_order_relaxed);
    for (MemoryEvent& e : out.events)
      if (const auto at = roles.find(e.number); at != roles.end()) e.role = at->second;
    return out;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
  // A history for which there is no memory ends.
  template <class F>
  void keep(F add) noexcept {
    try {
      add();
    } catch (const std::bad_alloc&) {
      on_ = false;
    }
  }

  bool on_ = false;
  std::chrono::steady_clock::time_point began_;
  MemoryRecord history_;
};

}  // namespace naru::runtime
