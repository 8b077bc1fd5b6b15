// Memory of devices: statistics, limits, the cache, and a profiler. Each function first submits the device's deferred work, because
// deferred work has no memory yet. Functions throw DeviceUnavailableError if the device does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "naru/device.h"

namespace naru {

// Bytes in tensors; bytes reserved from the device, including cached ones; and the peaks of both since the program's start or the last
// reset.
size_t memory_allocated(Device device);
size_t memory_reserved(Device device);
size_t max_memory_allocated(Device device);
size_t max_memory_reserved(Device device);
void reset_peak_memory_stats(Device device);
// Resets totals, retries and failures to 0.
void reset_accumulated_memory_stats(Device device);
// (free bytes, total bytes)
std::pair<size_t, size_t> mem_get_info(Device device);

// The allocator's statistics under PyTorch's names ("allocated_bytes.all.current", "num_ooms" ...), in bytes and counts. In addition,
// "driver_used_bytes" is what the driver reports as used: allocated + "cached_bytes" + "other_bytes", which the driver itself and other
// programs hold; "limit_bytes" is 0 if there is no limit.
std::map<std::string, int64_t> memory_stats(Device device);
// The statistics as PyTorch's table, plus rows for memory held by others and for the limit. abbreviated: without the pools.
std::string memory_summary(Device device, bool abbreviated = false);

// Returns unused cached memory to the device.
void empty_cache(Device device);
// Limits this process to `bytes` of the device's memory; 0: no limit.
void set_memory_limit(Device device, size_t bytes);
// The same, as a fraction of the device's memory. Throws ValueError outside [0, 1].
void set_per_process_memory_fraction(double fraction, Device device);

// One allocation or release.
struct MemoryChange {
  double seconds = 0;                  // since the start of the recording
  int64_t bytes = 0;                   // allocated; negative: released
  uint64_t number = 0;                 // id of the allocation; its release has the same
  size_t allocated = 0, reserved = 0;  // after the change
  std::string op,
      line;          // the creating operator and its location: the Python line, or that of a SourceLocationScope (naru/source_location.h)
  std::string role;  // category: "parameter", "gradient", "activation", "optimizer state" or "other"
  uint64_t address = 0;
};
// A source of memory use: "train.py:12 · matmul", its peak in bytes, and its number of allocations.
struct MemoryHolder {
  std::string name;
  int64_t most = 0;
  int64_t allocations = 0;
};

// Records a device's allocations while it exists. At most one per device at a time.
class MemoryHistory {
 public:
  explicit MemoryHistory(Device device);
  MemoryHistory(const MemoryHistory&) = delete;
  MemoryHistory& operator=(const MemoryHistory&) = delete;
  ~MemoryHistory();
  // The events so far.
  std::vector<MemoryChange> events() const;
  // Writes a self-contained HTML page that shows memory by category and source over time. Throws RuntimeError if the file can't be written.
  void save_page(const std::string& path) const;

 private:
  Device device_;
};
// Sorted by peak, greatest first.
std::vector<MemoryHolder> memory_holders(const std::vector<MemoryChange>& events);
// The HTML text of that page.
std::string memory_page(Device device, const std::vector<MemoryChange>& events);

}  // namespace naru
