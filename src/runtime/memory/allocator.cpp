#include "runtime/memory/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device_kinds.h"
#include "core/tensor_impl.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/block.h"
#include "runtime/memory/memory_recorder.h"
#include "runtime/os/fork.h"

namespace naru::runtime {
namespace {

constexpr size_t kRound = 512;
constexpr size_t kSlab = size_t{2} << 20;
constexpr size_t kSmall = size_t{1} << 20;   // requests up to this size share slabs
constexpr size_t kMedium = size_t{8} << 20;  // up to this size, requests share bigger slabs
constexpr size_t kMediumSlab = size_t{16} << 20;
constexpr int kTries = 16;                      // free blocks examined to find one that needs no waiting
constexpr size_t kLeastRest = size_t{1} << 20;  // a large block is split only if at least this much is left

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

bool caching() {
  const char* text = std::getenv("NARU_CACHING");
  return !text || std::string_view(text) != "0";
}

template <class F>
void each_figure(PoolStats& p, F f) {
  for (MemoryFigure* figure :
       {&p.allocations, &p.slabs, &p.splits, &p.allocated_bytes, &p.requested_bytes, &p.reserved_bytes, &p.split_bytes})
    f(*figure);
}

}  // namespace

void MemoryFigure::add(size_t n) noexcept {
  current += static_cast<int64_t>(n);
  added += static_cast<int64_t>(n);
  peak = std::max(peak, current);
}

void MemoryFigure::remove(size_t n) noexcept {
  current -= static_cast<int64_t>(n);
  removed += static_cast<int64_t>(n);
}

std::string size_text(size_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (v >= 1024 && unit < 5) v /= 1024, ++unit;
  return fmt::format("{:.2f} {}", v, kUnits[unit]);
}

const char* name_of(MemoryRole role) noexcept {
  constexpr const char* kNames[] = {"other", "parameter", "gradient", "activation", "optimizer state"};
  return kNames[static_cast<size_t>(role)];
}

struct CachingAllocator::State {
  Backend& backend;
  const Device device;
  const MemoryKind kind;
  bool cached = true;
  size_t total = 0, in_one_piece = 0;
  mutable std::mutex mutex;
  FreeList free_small, free_large;
  std::unordered_map<void*, Block*> used;
  MemoryStats stats;
  uint64_t served = 0;  // requests served so far; numbers the allocations
  std::atomic<size_t> limit{0};
  MemoryRecorder recorder;
  std::vector<DeviceStream*> streams;
  std::atomic<size_t> scratch{0};                 // bytes of the streams' scratch memory
  std::atomic<size_t> promised{0}, allocated{0};  // allocated: a copy of stats.allocated(), readable without the lock
  // The bytes that may be in use; 0: unknown.
  size_t most() const noexcept {
    const size_t set = limit.load(std::memory_order_relaxed);
    return set ? set : total;
  }

  State(Backend& b, Device d, MemoryKind k) : backend(b), device(d), kind(k) {
    measure();
    hold_at_fork(mutex);
  }
  ~State() { forget_at_fork(mutex); }

  void measure() {
    const Properties p = backend.properties(device);
    total = p.total_memory;
    // Where kernels are checked, no two tensors lie side by side, and what is released is out of bounds.
    cached = caching() && !(backend.simulated() && kind == MemoryKind::Device && virtual_options(device.type).ptx);
    in_one_piece = kind == MemoryKind::Device ? p.largest_piece : 0;
  }

  size_t reserved() const noexcept { return stats.reserved() + scratch.load(std::memory_order_relaxed); }
  FreeList& free_list(bool small) { return small ? free_small : free_large; }

  template <class F>
  void count(bool small, F f) noexcept {
    f(stats.all);
    f(small ? stats.small : stats.large);
  }
  void insert_free(Block* block) noexcept {
    free_list(block->small).insert(std::move(block->place));
    if (block->split()) count(block->small, [&](PoolStats& p) { p.splits.add(1), p.split_bytes.add(block->size); });
  }
  void remove_free(Block* block) noexcept {
    FreeList& list = free_list(block->small);
    block->place = list.extract(list.find(block));
    if (block->split()) count(block->small, [&](PoolStats& p) { p.splits.remove(1), p.split_bytes.remove(block->size); });
  }

  // The smallest free block that is large enough, preferably one that `stream` can use without waiting. It stays in the list.
  Block* find(size_t wanted, bool small, DeviceStream* stream, bool may_wait) {
    FreeList& list = free_list(small);
    Block probe{nullptr, wanted, small};
    auto it = list.lower_bound(&probe);
    if (!may_wait)
      for (int tries = 0; it != list.end() && !(*it)->ready_for(stream); ++it)
        if (++tries == kTries) return nullptr;
    return it == list.end() ? nullptr : *it;
  }

  // `any`: also from the blocks for large requests.
  void* take(size_t bytes, Storage* holder, DeviceStream* stream, bool any = false) {
    const size_t wanted = cached ? round_up(bytes, kRound) : bytes;
    const bool small = wanted <= kSmall && !any;
    Block* block = cached ? find(wanted, small, stream, false) : nullptr;
    if (!block) block = new_slab(wanted, small);
    if (!block && cached) block = find(wanted, small, stream, true);
    if (!block) return nullptr;
    // Do what may throw first: until then the block stays in the free list.
    const size_t rest = block->size - wanted;
    std::unique_ptr<Block> tail;
    if (cached && rest >= (small ? kRound : kLeastRest)) {
      tail = Block::make(block->data + wanted, rest, small);
      tail->under_way = block->under_way;
    }
    if (holder)
      holder->pending_uses.inherit(block->under_way);
    else
      block->finish();
    used.emplace(block->data, block);
    remove_free(block);
    if (tail) split(block, tail.release());
    block->under_way = {};
    block->used = wanted;
    block->requested = bytes;
    block->holder = holder;
    block->number = served++;
    count(block->small, [&](PoolStats& p) { p.allocations.add(1), p.allocated_bytes.add(wanted), p.requested_bytes.add(bytes); });
    allocated.store(stats.allocated(), std::memory_order_relaxed);
    recorder.note(*block, static_cast<int64_t>(wanted), stats);
    return block->data;
  }

  // Splits a block that is in no list: its end becomes the new free block `tail`.
  void split(Block* block, Block* tail) noexcept {
    tail->before = block;
    tail->after = block->after;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->size -= tail->size;
    insert_free(tail);
  }

  // Allocates a slab as a free block; null if the device has no memory left.
  Block* new_slab(size_t wanted, bool small) {
    const size_t least = cached ? round_up(wanted, kSlab) : wanted;
    // If the preferred size can't be allocated, try the minimum.
    for (const size_t size : {!cached ? least : small ? kSlab : wanted <= kMedium ? kMediumSlab : least, least}) {
      const size_t most = limit.load(std::memory_order_relaxed);
      if (most && reserved() + size > most) continue;
      std::unique_ptr<Block> block = Block::make(nullptr, size, small);
      block->data = static_cast<char*>(backend.allocate(device, kind, size));
      if (!block->data) {
        ++stats.driver_failures;
        continue;
      }
      count(small, [&](PoolStats& p) { p.slabs.add(1), p.reserved_bytes.add(size); });
      ++stats.driver_allocations;
      recorder.note_slab(block->data, static_cast<int64_t>(size));
      insert_free(block.get());
      return block.release();
    }
    return nullptr;
  }

  void give_back(void* memory, ReleasedUses under_way) noexcept {
    const auto it = used.find(memory);
    if (it == used.end()) return;
    Block* block = it->second;
    used.erase(it);
    count(block->small, [&](PoolStats& p) {
      p.allocations.remove(1), p.allocated_bytes.remove(block->used), p.requested_bytes.remove(block->requested);
    });
    allocated.store(stats.allocated(), std::memory_order_relaxed);
    recorder.note(*block, -static_cast<int64_t>(block->used), stats);
    block->used = 0;
    block->under_way = std::move(under_way);
    if (!cached) return drop(block);
    if (Block* next = block->after; next && !next->used) {
      remove_free(next);
      join(block, next);
    }
    if (Block* previous = block->before; previous && !previous->used) {
      remove_free(previous);
      join(previous, block);
      block = previous;
    }
    insert_free(block);
  }

  // Merges two neighbouring blocks into `first`.
  void join(Block* first, Block* second) noexcept {
    first->size += second->size;
    first->after = second->after;
    if (first->after) first->after->before = first;
    second->under_way.each([&](const StreamPoint& m) {
      try {
        add_point(first->under_way.read, m);
      } catch (const std::bad_alloc&) {
        m.stream->reach(m.seq);  // no memory to record it, so wait for it
      }
    });
    delete second;
  }

  // Calls f(address, bytes) for each slab. A slab's blocks are linked in address order.
  template <class F>
  void each_slab(F f) const {
    const auto look = [&](const Block* first) {
      if (first->before) return;
      size_t bytes = 0;
      for (const Block* b = first; b; b = b->after) bytes += b->size;
      f(first->data, bytes);
    };
    for (const auto& [data, block] : used) look(block);
    for (const FreeList* list : {&free_small, &free_large})
      for (const Block* block : *list) look(block);
  }

  void drop(Block* block) noexcept {
    block->finish();
    count(block->small, [&](PoolStats& p) { p.slabs.remove(1), p.reserved_bytes.remove(block->size); });
    ++stats.driver_releases;
    recorder.note_slab(block->data, -static_cast<int64_t>(block->size));
    backend.release(device, kind, block->data, block->size);
    delete block;
  }

  void empty() {
    for (FreeList* list : {&free_small, &free_large})
      for (auto it = list->begin(); it != list->end();) {
        Block* block = *it;
        if (block->before || block->after) {
          ++it;
          continue;
        }
        it = list->erase(it);
        drop(block);
      }
    for (DeviceStream* s : streams) s->release_scratch();
  }

  // The ten lines of the program that hold most, each with all of its blocks.
  static std::string holders_text(std::span<const std::pair<size_t, Origin>> blocks) {
    struct Holder {
      size_t bytes = 0, blocks = 0;
    };
    std::map<std::string, Holder> by_line;
    for (const auto& [size, origin] : blocks) {
      std::string made = origin.op ? fmt::format(" made by {}", origin.op) : std::string();
      if (origin.where) made += " at " + line_text(origin.where);
      Holder& h = by_line[made];
      h.bytes += size, ++h.blocks;
    }
    std::vector<std::pair<std::string, Holder>> largest(by_line.begin(), by_line.end());
    std::stable_sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    if (largest.size() > 10) largest.resize(10);
    std::string text;
    for (const auto& [made, h] : largest)
      text += fmt::format("\n  {}{}{}", size_text(h.bytes), h.blocks > 1 ? fmt::format(" in {} tensors", h.blocks) : "", made);
    return largest.empty() ? text : " The largest holders:" + text + "\n";
  }

  // `why`: a more specific reason than a lack of memory.
  [[noreturn]] void raise(size_t bytes, const std::string& why = {}) {
    MemoryStats s;
    std::vector<std::pair<size_t, Origin>> blocks;
    {
      const std::lock_guard lock(mutex);
      ++stats.failures;
      s = stats;
      for (const auto& [data, block] : used) blocks.emplace_back(block->used, block->holder ? block->holder->origin : Origin());
    }
    std::string text = fmt::format(fmt::runtime(kind_of(device.type).out_of_memory), size_text(bytes), bytes);
    if (!why.empty()) text += " " + why;
    const size_t most = limit.load();
    text += fmt::format(" Device {} has {} in all{}; {} are allocated, {} more are cached", device.str(), size_text(total),
                        most ? ", of which this process may use " + size_text(most) : "", size_text(s.allocated()),
                        size_text(s.reserved() - s.allocated()));
    const size_t later = promised.load();
    text += later ? fmt::format(", and work that has not run yet needs {}.", size_text(later)) : ".";
    if (in_one_piece && bytes > in_one_piece)
      text += fmt::format(" It gives at most {} in one piece, however much is free: use several smaller tensors.", size_text(in_one_piece));
    text += holders_text(blocks);
    text += " To fix it, drop tensors that are no longer needed, or use smaller batches.";
    throw OutOfMemoryError(text);
  }
};

CachingAllocator::CachingAllocator(Backend& backend, Device device, MemoryKind kind)
    : state_(std::make_unique<State>(backend, device, kind)) {}

CachingAllocator::~CachingAllocator() {
  const std::lock_guard lock(state_->mutex);
  state_->empty();
}

void* CachingAllocator::allocate(size_t bytes, Storage* holder, DeviceStream* stream) {
  if (bytes == 0) return nullptr;
  check_plausible(bytes);
  State& s = *state_;
  if (const std::string why = s.kind == MemoryKind::Device ? s.backend.refusal(s.device) : std::string(); !why.empty()) s.raise(bytes, why);
  {
    const std::lock_guard lock(s.mutex);
    if (void* p = s.take(bytes, holder, stream)) return p;
    ++s.stats.retries;
    s.empty();
    if (void* p = s.take(bytes, holder, stream)) return p;
    // Last resort: serve a small request from a partly used slab for large requests.
    if (void* p = s.take(bytes, holder, stream, true)) return p;
  }
  s.raise(bytes);
}

void CachingAllocator::release(void* memory, ReleasedUses under_way) noexcept {
  if (!memory) return;
  const std::lock_guard lock(state_->mutex);
  state_->give_back(memory, std::move(under_way));
}

void CachingAllocator::change_holder(void* memory, Storage& holder) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const auto at = state_->used.find(memory); at != state_->used.end()) at->second->holder = &holder;
}

void CachingAllocator::empty_cache() {
  const std::lock_guard lock(state_->mutex);
  state_->empty();
}

MemoryStats CachingAllocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  MemoryStats s = state_->stats;
  MemoryFigure& reserved = s.all.reserved_bytes;
  reserved.current += static_cast<int64_t>(state_->scratch.load(std::memory_order_relaxed));
  reserved.peak = std::max(reserved.peak, reserved.current);
  s.limit = state_->limit.load();
  return s;
}

void CachingAllocator::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  MemoryStats& s = state_->stats;
  for (PoolStats* pool : {&s.all, &s.small, &s.large}) each_figure(*pool, [](MemoryFigure& f) { f.peak = f.current; });
}

void CachingAllocator::reset_accumulated() {
  const std::lock_guard lock(state_->mutex);
  MemoryStats& s = state_->stats;
  for (PoolStats* pool : {&s.all, &s.small, &s.large}) each_figure(*pool, [](MemoryFigure& f) { f.added = f.removed = 0; });
  s.retries = s.failures = 0;
}

void CachingAllocator::set_limit(size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->limit.store(bytes);
  if (bytes && state_->reserved() > bytes) state_->empty();
}

void CachingAllocator::check_plausible(size_t bytes) const {
  const size_t most = state_->limit.load(std::memory_order_relaxed);
  if ((state_->total && bytes > state_->total) || (most && bytes > most) || (state_->in_one_piece && bytes > state_->in_one_piece))
    state_->raise(bytes);
}

void CachingAllocator::record_history(bool on) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (!on) return s.recorder.forget();
  s.recorder.begin();
  std::vector<const Block*> blocks;
  for (const auto& [data, block] : s.used) blocks.push_back(block);
  s.each_slab([&](const void* data, size_t bytes) { s.recorder.note_slab(data, static_cast<int64_t>(bytes)); });
  std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->number < b->number; });
  size_t allocated = 0;
  for (const Block* b : blocks) {
    allocated += b->used;
    s.recorder.note_earlier(*b, allocated, s.stats.reserved());
  }
}

MemoryRecord CachingAllocator::history() const {
  const std::lock_guard lock(state_->mutex);
  return state_->recorder.history(state_->used);
}

CachingAllocator::Found CachingAllocator::find(const void* address) const {
  const auto* const p = static_cast<const char*>(address);
  const std::lock_guard lock(state_->mutex);
  for (const auto& [data, block] : state_->used)
    if (p >= block->data && p < block->data + block->size) {
      Found found{block->data, block->requested, {}, MemoryRole::Other};
      if (block->holder) found.origin = block->holder->origin, found.role = block->holder->role.load(std::memory_order_relaxed);
      return found;
    }
  return {};
}

bool CachingAllocator::has_room(size_t bytes) const noexcept {
  const State& s = *state_;
  if (s.in_one_piece && bytes > s.in_one_piece) return false;
  const size_t most = s.most();
  return !most || s.allocated.load(std::memory_order_relaxed) + s.promised.load(std::memory_order_relaxed) + bytes <= most;
}

bool CachingAllocator::promise(size_t bytes) noexcept {
  State& s = *state_;
  const size_t most = s.most();
  const size_t promised = s.promised.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (!most || s.allocated.load(std::memory_order_relaxed) + promised <= most) return true;
  s.promised.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void CachingAllocator::end_promise(size_t bytes) noexcept { state_->promised.fetch_sub(bytes, std::memory_order_relaxed); }

Device CachingAllocator::device() const noexcept { return state_->device; }
MemoryKind CachingAllocator::kind() const noexcept { return state_->kind; }

bool CachingAllocator::renew() {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (!s.used.empty() || s.promised.load(std::memory_order_relaxed) != 0) return false;
  s.empty();
  if (s.reserved() != 0) return false;
  s.measure();
  s.stats = {};
  s.served = 0;
  s.limit.store(0);
  s.recorder.forget();
  return true;
}

void CachingAllocator::add_stream(DeviceStream& stream) {
  const std::lock_guard lock(state_->mutex);
  state_->streams.push_back(&stream);
}

void CachingAllocator::remove_stream(DeviceStream& stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  std::erase(state_->streams, &stream);
}

void CachingAllocator::count_scratch(int64_t bytes) noexcept {
  state_->scratch.fetch_add(static_cast<size_t>(bytes), std::memory_order_relaxed);
}

}  // namespace naru::runtime
