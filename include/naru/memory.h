// Memory of devices: figures, a table, limits, the cache, and a history. Each function first has all that was asked of the device handed to it, for
// what is deferred has no memory yet. DeviceUnavailableError for a device that there is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "naru/device.h"

namespace naru {

// Bytes in tensors; bytes taken from the device, cached ones included; the most of both since the program, or the last reset, began.
size_t memory_allocated(Device device);
size_t memory_reserved(Device device);
size_t max_memory_allocated(Device device);
size_t max_memory_reserved(Device device);
void reset_peak_memory_stats(Device device);
// Sums, retries and failures begin anew at 0.
void reset_accumulated_memory_stats(Device device);
// (bytes that nobody holds, bytes that there are)
std::pair<size_t, size_t> mem_get_info(Device device);

// The allocator's figures under PyTorch's names ("allocated_bytes.all.current", "num_ooms" ...), in bytes and counts, and some beside them:
// "driver_used_bytes" is what the driver says is in use: allocated + "cached_bytes" + "other_bytes", which the driver itself and other programs hold;
// "limit_bytes" is 0 where there is no limit.
std::map<std::string, int64_t> memory_stats(Device device);
// The figures as PyTorch's table, with lines for what others hold and for the limit. abbreviated: without the pools.
std::string memory_summary(Device device, bool abbreviated = false);

// Gives cached memory that nobody uses back to the device.
void empty_cache(Device device);
// This process takes no more than so many bytes of the device from now on; 0: no limit.
void set_memory_limit(Device device, size_t bytes);
// The same as a share of the device's memory. ValueError outside [0, 1].
void set_per_process_memory_fraction(double fraction, Device device);

// One change of the memory in use.
struct MemoryChange {
  double seconds = 0;                  // since the history began
  int64_t bytes = 0;                   // taken, or given back (negative)
  uint64_t number = 0;                 // of the allocation: its release carries the same
  size_t allocated = 0, reserved = 0;  // after it
  std::string op, line;                // that made the tensor: the line of the Python program, or of a Here (naru/place.h)
  std::string role;                    // what it came to serve: "parameter", "gradient", "activation", "optimizer state" or "other"
  uint64_t address = 0;
};
// Who held how much: "train.py:12 · matmul", the most bytes at one time, and in how many allocations.
struct MemoryHolder {
  std::string name;
  int64_t most = 0;
  int64_t allocations = 0;
};

// Records a device's allocations as long as it lives; one a device at a time.
class MemoryHistory {
 public:
  explicit MemoryHistory(Device device);
  MemoryHistory(const MemoryHistory&) = delete;
  MemoryHistory& operator=(const MemoryHistory&) = delete;
  ~MemoryHistory();
  // So far.
  std::vector<MemoryChange> events() const;
  // Writes them as one self-contained HTML page: what held memory when, and where it came from. RuntimeError where the file can't be written.
  void save_page(const std::string& path) const;

 private:
  Device device_;
};
// The greatest first.
std::vector<MemoryHolder> memory_holders(const std::vector<MemoryChange>& events);
// The page's text.
std::string memory_page(Device device, const std::vector<MemoryChange>& events);

}  // namespace naru
