// The devices of this machine: their number and properties, why a kind is unavailable, selection, and synchronization.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/device.h"
#include "naru/source_location.h"

namespace naru {

// Number of devices of a kind; 0 if there are none.
int device_count(DeviceType kind);
bool is_available(DeviceType kind);
// Why there is no device of a kind, and what to do about it; "" if there is one.
std::string why_unavailable(DeviceType kind);
// E.g. "AMD EPYC 7763". Throws DeviceUnavailableError if the device does not exist.
std::string device_name(Device device);

// Properties of a device; 0 or "" where one does not apply.
struct DeviceProperties {
  std::string name, backend, driver, libraries, uuid, pci;
  size_t total_memory = 0;  // bytes
  bool integrated = false;  // shares the host's memory
  bool simulated = false;   // is a virtual device
  bool tested_on_hardware = false;
  int major = 0, minor = 0, multi_processor_count = 0, warp_size = 0, max_threads_per_block = 0, max_threads_per_multi_processor = 0,
      regs_per_multiprocessor = 0, clock_rate = 0;        // kHz
  size_t shared_memory_per_block = 0, l2_cache_size = 0;  // bytes
  bool float64 = true, float16 = true, bfloat16 = true;   // supports computation in these dtypes
};
// Throws DeviceUnavailableError if the device does not exist.
DeviceProperties get_device_properties(Device device);

// The calling thread's current device of a kind, to which "cuda" without an index refers.
int current_device(DeviceType kind);
void set_device(Device device, SourceLocation where = NARU_CURRENT_LOCATION);
// Sets the current device within a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device, SourceLocation where = NARU_CURRENT_LOCATION);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  Device before_;
};
// True if direct copies between the devices deliver correct bytes; tested once.
bool can_access_peer(Device device, Device peer);

// The result of best_device(), with the reason why each other kind except cpu was not chosen.
struct BestDevice {
  Device device;
  std::vector<std::pair<DeviceType, std::string>> others;
  operator Device() const noexcept { return device; }
};
// The first device other than cpu (kinds in the order cuda, rocm, xpu, mps), else cpu.
BestDevice best_device();

// Requirements on a device; default members require nothing.
struct PickOptions {
  std::optional<DeviceType> kind = {};  // cpu only if requested
  size_t free_memory = 0;               // bytes available for new tensors
  std::string uuid = {};                // or a prefix; "GPU-" at the start may be omitted
  std::string pci = {};                 // "0000:17:00.0", "17:00.0" or "17:00"
};
// Returns the device with the most free memory among the fitting devices of the first kind (in best_device()'s order) that has any. If none
// fits, throws DeviceUnavailableError listing the properties of each device. Throws ValueError for a malformed pci.
Device pick(const PickOptions& wanted = {});

// Waits until all work of the device is done, and throws its errors.
void synchronize(Device device);
// Defines the virtual devices: "cuda:4,mps:1"; "" removes them. Until the first call, the environment variable NARU_VIRTUAL defines them.
void set_virtual_devices(const std::string& spec);
// The current virtual devices, in the same syntax.
std::string virtual_devices();

}  // namespace naru
