// A Metal device in use: its memory and its kernels.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/metal/objc.h"
#include "naru/device.h"
#include "render/c/kernel_table.h"
#include "runtime/device/availability.h"

namespace naru::backends::metal {

struct DeviceInfo {
  Owned device;
  std::string name, architecture, system;                                      // system: "Version 15.1 (Build 24B83)"
  uint64_t registry_id = 0, memory = 0, largest_buffer = 0, group_memory = 0;  // bytes
  bool shaders = false;                                                        // MetalPerformanceShaders are there for it
};

struct Found {
  std::vector<DeviceInfo> devices;  // those that can be used
  runtime::Availability state;
};
// Asks Metal, once per process.
const Found& found();

struct Kernel {
  Owned pipeline;
};

// Thread-safe.
class MetalDevice {
 public:
  MetalDevice(Device device, const DeviceInfo& info);
  MetalDevice(const MetalDevice&) = delete;

  // Memory that the host uses at the same addresses. nullptr if there is none left, or no block that large.
  void* allocate(size_t bytes);
  void release(void* address) noexcept;
  // Bytes of the memory that Metal recommends to use at most, less what this process has allocated.
  size_t free_memory() const;
  // The buffer of an address, and the offset in it. Null: the address is not in the device's memory.
  struct Place {
    id buffer;
    size_t offset;
  };
  std::optional<Place> find(const void* address) const;

  Owned make_queue() const;
  Owned make_event() const;
  // A buffer with a copy of the bytes.
  Owned make_buffer(const void* bytes, size_t size) const;
  // The kernel of a launch, compiled if necessary. Throws CompilerError.
  const Kernel& kernel_of(const render::c::Launch& launch);
  // A kernel that does nothing.
  const Kernel& empty_kernel();

  const DeviceInfo& info() const noexcept { return info_; }
  render::c::Target target() const;
  Device device() const noexcept { return device_; }
  // Throws RuntimeError in a process forked after the device was opened.
  void check_process() const;
  bool forked() const noexcept;

 private:
  struct Piece {
    size_t bytes = 0;
    Owned buffer;
  };
  Kernel compile(const std::string& text, int group) const;

  const Device device_;
  const DeviceInfo& info_;
  const int process_, generation_;
  mutable std::mutex memory_mutex_;
  std::map<const char*, Piece> pieces_;  // by address
  size_t used_ = 0;
  render::c::KernelTable<Kernel> kernels_;
  std::once_flag empty_made_;
  Kernel empty_;
};

}  // namespace naru::backends::metal
