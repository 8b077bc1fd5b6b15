// CachingAllocator: keeps released blocks of a device's memory for reuse. One per device; one class for all of them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/backend.h"

namespace naru::runtime {

// Bytes, but for the counts.
struct MemoryStats {
  size_t allocated = 0, reserved = 0;
  size_t peak_allocated = 0, peak_reserved = 0;
  size_t allocations = 0, releases = 0, driver_allocations = 0;
  size_t limit = 0;  // 0: the device's memory is the limit
};

class CachingAllocator {
 public:
  CachingAllocator(Backend& backend, Device device, MemoryKind kind = MemoryKind::Device);
  ~CachingAllocator();
  // At least `bytes` bytes, 64-byte aligned, with undefined contents. When there is none: empties the cache, tries again, then throws OutOfMemoryError
  // with requested, allocated, reserved, limit.
  void* allocate(size_t bytes);
  void release(void* memory) noexcept;
  // Gives cached blocks that nobody uses back to the device.
  void empty_cache();
  MemoryStats stats() const;
  void reset_peak();
  // No more than `bytes` reserved from now on; 0: no limit.
  void set_limit(size_t bytes);
  // Would a request of this size fail for certain? Cheap; used to fail at the call that asks, before memory is needed.
  void check_plausible(size_t bytes) const;
};

}  // namespace naru::runtime
