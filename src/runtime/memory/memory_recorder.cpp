#include "runtime/memory/memory_recorder.h"

#include <new>

namespace naru::runtime {
namespace {

// Ends the history if there is no memory to extend it.
template <class F>
void keep(bool& on, F add) noexcept {
  try {
    add();
  } catch (const std::bad_alloc&) {
    on = false;
  }
}

Origin origin_of(const Block& block) { return block.holder ? block.holder->origin : Origin(); }

MemoryRole role_of(const Block& block) { return block.holder ? block.holder->role.load(std::memory_order_relaxed) : MemoryRole::Other; }

}  // namespace

void MemoryRecorder::begin() {
  forget();
  on_ = true;
  began_ = std::chrono::steady_clock::now();
}

void MemoryRecorder::forget() noexcept {
  on_ = false;
  history_ = {};
}

double MemoryRecorder::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

void MemoryRecorder::record(const Block& block, int64_t bytes, const MemoryStats& stats) noexcept {
  keep(on_, [&] {
    history_.events.push_back(
        {seconds(), bytes, block.number, stats.allocated(), stats.reserved(), origin_of(block), role_of(block), block.data});
  });
}

void MemoryRecorder::note_slab(const void* data, int64_t bytes) noexcept {
  if (on_) keep(on_, [&] { history_.slabs.push_back({seconds(), bytes, data}); });
}

void MemoryRecorder::note_earlier(const Block& block, size_t allocated, size_t reserved) {
  history_.events.push_back(
      {0, static_cast<int64_t>(block.used), block.number, allocated, reserved, origin_of(block), MemoryRole::Other, block.data});
}

MemoryRecord MemoryRecorder::history(const std::unordered_map<void*, Block*>& used) const {
  MemoryRecord out = history_;
  std::unordered_map<uint64_t, MemoryRole> roles;
  for (const MemoryEvent& e : out.events)
    if (e.bytes < 0) roles[e.number] = e.role;
  for (const auto& [data, block] : used)
    if (block->holder) roles[block->number] = role_of(*block);
  for (MemoryEvent& e : out.events)
    if (const auto at = roles.find(e.number); at != roles.end()) e.role = at->second;
  return out;
}

}  // namespace naru::runtime
