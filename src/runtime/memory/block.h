// Block: a piece of the memory that a CachingAllocator has allocated from its device; and the free list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "core/pending_uses.h"
#include "core/storage.h"
#include "runtime/device/backend.h"

namespace naru::runtime {

struct Block;
struct BySize {
  bool operator()(const Block* a, const Block* b) const noexcept;
};
using FreeList = std::set<Block*, BySize>;

// A piece of a slab. Blocks of one slab are linked in address order.
struct Block {
  char* data;
  size_t size;  // bytes
  bool small;
  size_t used = 0;       // bytes of the request it serves, rounded up; 0: free
  size_t requested = 0;  // bytes
  const Storage* holder = nullptr;
  uint64_t number = 0;  // number of the allocation it serves
  Block *before = nullptr, *after = nullptr;
  ReleasedUses under_way{};     // free blocks: pending work of the last owners
  FreeList::node_type place{};  // its free-list node, kept while in use, so that releasing needs no allocation

  // In no free list yet.
  static std::unique_ptr<Block> make(char* data, size_t size, bool small) {
    std::unique_ptr<Block> block(new Block{data, size, small});
    FreeList list;
    block->place = list.extract(list.insert(block.get()).first);
    return block;
  }
  // True if `stream` may use the block without waiting for another stream (null: without waiting at all). Does not query the stream's own
  // points, which may cost an event each: its work is in order anyway, and there is at most one such point.
  bool ready_for(const DeviceStream* stream) {
    under_way.drop([stream](const StreamPoint& m) { return m.stream != stream && m.stream->completed() >= m.seq; });
    bool ready = true;
    under_way.each([&](const StreamPoint& m) { ready &= m.stream == stream; });
    return ready;
  }
  void finish() noexcept {
    under_way.each([](const StreamPoint& m) { m.stream->reach(m.seq); });
    under_way = {};
  }
  bool split() const noexcept { return before || after; }
};

inline bool BySize::operator()(const Block* a, const Block* b) const noexcept {
  return a->size != b->size ? a->size < b->size : std::less<>()(a->data, b->data);
}

}  // namespace naru::runtime
