// CachingAllocator: keeps released blocks of a device's memory for reuse. One instance per device; the same class for all backends.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/device/backend.h"

namespace naru::runtime {

// A counter: the current and peak values, and the sums of everything added and removed.
struct MemoryFigure {
  int64_t current = 0, peak = 0, added = 0, removed = 0;

  void add(size_t n) noexcept;
  void remove(size_t n) noexcept;
};

// PyTorch's allocations are the requests served, its segments are slabs. A "split" is a free block of a slab that also has other blocks.
struct PoolStats {
  MemoryFigure allocations, slabs, splits;                                     // counts
  MemoryFigure allocated_bytes, requested_bytes, reserved_bytes, split_bytes;  // allocated: requests rounded up to 512; reserved: slabs
};

// In bytes, except for the counts.
struct MemoryStats {
  PoolStats all, small, large;  // small: slabs shared by requests up to 1 MiB
  size_t retries = 0;           // requests for which the cache was emptied
  size_t failures = 0;          // requests that ended in an OutOfMemoryError
  size_t driver_allocations = 0, driver_failures = 0, driver_releases = 0;
  size_t limit = 0;  // 0: only the device's memory is the limit

  size_t allocated() const noexcept { return static_cast<size_t>(all.allocated_bytes.current); }
  size_t reserved() const noexcept { return static_cast<size_t>(all.reserved_bytes.current); }
  size_t peak_allocated() const noexcept { return static_cast<size_t>(all.allocated_bytes.peak); }
  size_t peak_reserved() const noexcept { return static_cast<size_t>(all.reserved_bytes.peak); }
};

// One allocation or release, for the history.
struct MemoryEvent {
  double seconds = 0;                   // since the start of the history
  int64_t bytes = 0;                    // allocated, or released (negative)
  uint64_t number = 0;                  // of the allocation; its release has the same number
  size_t allocated = 0, reserved = 0;   // after this event
  Origin origin;                        // of the tensor the memory was allocated for
  MemoryRole role = MemoryRole::Other;  // memory category, as known by now or at the release
  const void* address = nullptr;
};
// A slab allocated from the device, or returned to it (negative bytes).
struct SlabEvent {
  double seconds = 0;
  int64_t bytes = 0;
  const void* address = nullptr;
};
struct MemoryRecord {
  std::vector<MemoryEvent> events;
  std::vector<SlabEvent> slabs;
};

// Blocks are cut from slabs of at least 2 MiB, best fit first, and merged when released. Thread-safe. NARU_CACHING=0 sends every request to
// the device and back, for sanitizers.
class CachingAllocator {
 public:
  CachingAllocator(Backend& backend, Device device, MemoryKind kind = MemoryKind::Device);
  ~CachingAllocator();
  // Returns at least `bytes` bytes, 64-byte aligned, with undefined contents; nullptr for 0 bytes. If there is no memory: empties the
  // cache, tries again, then throws an OutOfMemoryError that reports the requested, allocated and cached bytes, the limit, and the source
  // lines that hold the most memory. `holder`: the storage that gets the memory; it must release it before it dies. The holder inherits the
  // pending work on the block; without a holder the call waits for that work. `stream`: the first user (null: the host); blocks that this
  // stream can use without waiting are preferred.
  void* allocate(size_t bytes, Storage* holder = nullptr, DeviceStream* stream = nullptr);
  // Takes the memory back at once; `under_way`: pending work that still uses it. nullptr is allowed.
  void release(void* memory, ReleasedUses under_way = {}) noexcept;
  // Records that the memory now belongs to `holder`.
  void change_holder(void* memory, Storage& holder) noexcept;
  // Returns entirely unused slabs to the device.
  void empty_cache();
  MemoryStats stats() const;
  // Sets the peaks to the current values.
  void reset_peak();
  // Sets the sums, retries and failures to 0.
  void reset_accumulated();
  // Limits the reserved bytes from now on; 0: no limit.
  void set_limit(size_t bytes);
  // Starts a history of allocations and releases (on), or stops and deletes it. The history starts with the blocks that are in use already.
  void record_history(bool on);
  MemoryRecord history() const;
  // Throws OutOfMemoryError for a size that would not fit even if all memory was free. Cheap: used to fail at the user's call, before the
  // memory is needed.
  void check_plausible(size_t bytes) const;
  // Whether the allocated and promised bytes leave room for a request. If not, the caller should run deferred work first: that frees its inputs,
  // and an error then counts and lists its results.
  bool has_room(size_t bytes) const noexcept;
  // The block in use that holds this address: its first byte, the bytes that were asked for, and the origin and category of the tensor that it is for. Null
  // `data`: there is none.
  struct Found {
    const void* data = nullptr;
    size_t bytes = 0;
    Origin origin;
    MemoryRole role = MemoryRole::Other;
  };
  Found find(const void* address) const;
  // Reserves bytes for a later request. Returns false and reserves nothing if the allocated and promised bytes would exceed the capacity.
  bool promise(size_t bytes) noexcept;
  void end_promise(size_t bytes) noexcept;
  Device device() const noexcept;
  MemoryKind kind() const noexcept;
  // Rebinds the allocator to the device that replaces its removed one: empty, with figures reset and no limit. Returns false and changes
  // nothing if any of its memory is in use.
  bool renew();
  // For streams that keep scratch memory outside the cache: it counts as reserved, and is returned to the device together with the cache.
  void add_stream(DeviceStream& stream);
  void remove_stream(DeviceStream& stream) noexcept;
  void count_scratch(int64_t bytes) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "parameter", "gradient", "activation", "optimizer state", "other".
const char* name_of(MemoryRole role) noexcept;

// "2.00 GiB", "512 bytes".
std::string size_text(size_t bytes);

}  // namespace naru::runtime
