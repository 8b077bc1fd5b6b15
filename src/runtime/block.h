// Block: a piece of the memory that a CachingAllocator has of its device, and the list of free ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "core/pending_uses.h"
#include "core/storage.h"
#include "runtime/backend.h"

namespace naru::runtime {

struct Block;
struct BySize {
  bool operator()(const Block* a, const Block* b) const noexcept;
};
using FreeList = std::set<Block*, BySize>;

// A piece of a slab. Pieces of one slab are linked in the order of their addresses.
struct Block {
  char* data;
  size_t size;  // bytes it spans
  bool small;
  size_t used = 0;       // bytes of the request it serves, rounded up; 0: free
  size_t requested = 0;  // bytes
  const Storage* holder = nullptr;
  uint64_t number = 0;  // of the allocation it serves
  Block *before = nullptr, *after = nullptr;
  PastUses under_way{};         // free ones: work of the last owners
  FreeList::node_type place{};  // in the list of free ones, kept while it is in use: giving memory back needs none

  // In none of the lists yet.
  static std::unique_ptr<Block> make(char* data, size_t size, bool small) {
    std::unique_ptr<Block> block(new Block{data, size, small});
    FreeList list;
    block->place = list.extract(list.insert(block.get()).first);
    return block;
  }
  // Whether `stream` may use it without waiting for another (null: without waiting at all). Its own points are not asked for, which may cost an
  // event each: its work goes in order anyway, and there is at most one of them.
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
