// The devices of this machine: how many, what they are called, why there are none, and waiting for them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/device.h"
#include "naru/place.h"

namespace naru {

// Number of devices of a kind; 0 where there is none.
int device_count(DeviceType kind);
bool is_available(DeviceType kind);
// The reason why there is no device of a kind, and what to do about it; "" where there is one.
std::string why_unavailable(DeviceType kind);
// "AMD EPYC 7763". Throws DeviceUnavailableError for a device that does not exist.
std::string device_name(Device device);

// What a device is like; 0 and "" where that means nothing for it.
struct DeviceProperties {
  std::string name, backend, driver, libraries, uuid, pci;
  size_t total_memory = 0;  // bytes
  bool integrated = false;  // its memory is the host's
  bool simulated = false;   // a virtual device
  bool tested_on_hardware = false;
  int major = 0, minor = 0, multi_processor_count = 0, warp_size = 0, max_threads_per_block = 0, max_threads_per_multi_processor = 0,
      regs_per_multiprocessor = 0, clock_rate = 0;        // kHz
  size_t shared_memory_per_block = 0, l2_cache_size = 0;  // bytes
  bool float64 = true, float16 = true, bfloat16 = true;   // whether it computes in these types
};
// Throws DeviceUnavailableError for a device that does not exist.
DeviceProperties get_device_properties(Device device);

// The calling thread's current device of a kind: what "cuda" means there.
int current_device(DeviceType kind);
void set_device(Device device, Place where = NARU_CALLER);
// The same for the length of a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device, Place where = NARU_CALLER);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  Device before_;
};
// Whether bytes copied directly from one device to the other arrive as they were; measured once.
bool can_access_peer(Device device, Device peer);

// What best_device() chose; for each other kind but cpu why it was not.
struct BestDevice {
  Device device;
  std::vector<std::pair<DeviceType, std::string>> others;
  operator Device() const noexcept { return device; }
};
// The first device beside the cpu (kinds in the order cuda, rocm, xpu, mps), else the cpu.
BestDevice best_device();

// What a device is to have; members left as they are want nothing.
struct PickOptions {
  std::optional<DeviceType> kind = {};  // cpu only if it is asked for
  size_t free_memory = 0;               // bytes that new tensors could take
  std::string uuid = {};                // or its beginning; "GPU-" in front may be left out
  std::string pci = {};                 // "0000:17:00.0", "17:00.0" or "17:00"
};
// Of the first kind (in best_device()'s order) that has a fitting device the one with the most free memory. Throws
// DeviceUnavailableError that lists what each device has when none fits, ValueError for a pci that is none.
Device pick(const PickOptions& wanted = {});

// Waits until all work of the device is done, and throws the errors it had.
void synchronize(Device device);
// Defines the virtual devices: "cuda:4,mps:1"; "" removes them. Until the first call the environment variable
// NARU_VIRTUAL says which there are.
void set_virtual_devices(const std::string& spec);
// Those there are now, written the same way.
std::string virtual_devices();

}  // namespace naru
