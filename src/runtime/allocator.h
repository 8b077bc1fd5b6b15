// CachingAllocator: keeps released blocks of a device's memory for reuse. One per device; one class for all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/backend.h"

namespace naru::runtime {

// A figure now, at most, and the sums of all that was added to it and removed from it.
struct MemoryFigure {
  int64_t current = 0, peak = 0, added = 0, removed = 0;

  void add(size_t n) noexcept;
  void remove(size_t n) noexcept;
};

// What PyTorch calls allocations and segments are requests served and slabs; "split" are free blocks of a slab that has others, too.
struct PoolStats {
  MemoryFigure allocations, slabs, splits;                                     // counts
  MemoryFigure allocated_bytes, requested_bytes, reserved_bytes, split_bytes;  // allocated: requests rounded up to 512; reserved: slabs
};

// Bytes, but for the counts.
struct MemoryStats {
  PoolStats all, small, large;  // small: slabs that requests up to 1 MiB share
  size_t retries = 0;           // requests for which the cache was emptied
  size_t failures = 0;          // requests that ended in an OutOfMemoryError
  size_t driver_allocations = 0, driver_failures = 0, driver_releases = 0;
  size_t limit = 0;  // 0: the device's memory is the limit

  size_t allocated() const noexcept { return static_cast<size_t>(all.allocated_bytes.current); }
  size_t reserved() const noexcept { return static_cast<size_t>(all.reserved_bytes.current); }
  size_t peak_allocated() const noexcept { return static_cast<size_t>(all.allocated_bytes.peak); }
  size_t peak_reserved() const noexcept { return static_cast<size_t>(all.reserved_bytes.peak); }
};

// One change of the memory in use, for a history.
struct MemoryEvent {
  double seconds = 0;                   // since the history began
  int64_t bytes = 0;                    // taken, or given back (negative)
  uint64_t number = 0;                  // of the allocation: its release carries the same
  size_t allocated = 0, reserved = 0;   // after it
  Origin origin;                        // of the tensor it was made for
  MemoryRole role = MemoryRole::Other;  // what it has come to serve by now, or by its release
  const void* address = nullptr;
};
// Memory had of the device, or given back to it (negative).
struct SlabEvent {
  double seconds = 0;
  int64_t bytes = 0;
  const void* address = nullptr;
};
struct MemoryRecord {
  std::vector<MemoryEvent> events;
  std::vector<SlabEvent> slabs;
};

// Blocks are cut from slabs of at least 2 MiB, the best fitting first, and merged again when released. Thread-safe.
// NARU_CACHING=0: every request goes to the device and back, for sanitizers.
class CachingAllocator {
 public:
  CachingAllocator(Backend& backend, Device device, MemoryKind kind = MemoryKind::Device);
  ~CachingAllocator();
  // At least `bytes` bytes, 64-byte aligned, with undefined contents; nullptr for 0 bytes. When there is none: empties
  // the cache, tries again, then throws OutOfMemoryError with requested, allocated, cached, limit and the largest
  // holders by the line that made them. `holder`: the storage the memory is for; it must release the memory before it
  // dies. It inherits what is still under way in the memory; without a holder that is waited for. `stream`: who will
  // use it first (null: the host), so that memory is preferred which that one need not wait for.
  void* allocate(size_t bytes, Storage* holder = nullptr, DeviceStream* stream = nullptr);
  // Takes memory back at once; `under_way`: work that still uses it. nullptr is allowed.
  void release(void* memory, PastUses under_way = {}) noexcept;
  // The memory is another storage's from now on.
  void change_holder(void* memory, Storage& holder) noexcept;
  // Gives slabs that nobody uses any part of back to the device.
  void empty_cache();
  MemoryStats stats() const;
  // Peaks begin anew at what is now.
  void reset_peak();
  // Sums, retries and failures begin anew at 0.
  void reset_accumulated();
  // No more than `bytes` reserved from now on; 0: no limit.
  void set_limit(size_t bytes);
  // Starts a history of allocations and releases (on), or stops and forgets it. Blocks in use already stand at its beginning.
  void record_history(bool on);
  MemoryRecord history() const;
  // Throws OutOfMemoryError for a size that could not be had even if all was free. Cheap; used to fail at the call that
  // asks, before memory is needed.
  void check_plausible(size_t bytes) const;
  // Sets bytes aside that will be asked for later. False, and nothing is set aside, if what is allocated and promised
  // would exceed what there is.
  bool promise(size_t bytes) noexcept;
  void end_promise(size_t bytes) noexcept;
  Device device() const noexcept;
  MemoryKind kind() const noexcept;
  // It goes on for the device that has come in place of its own, which went: empty, with figures that begin anew and no limit. False, and it stays
  // as it is, while anybody has memory of it.
  bool renew();
  // Streams of the device keep memory beside the cache: it counts as reserved, and goes back to the device with the cache's.
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
