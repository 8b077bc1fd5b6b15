// GpuBackend: a backend over a driver's table. It has no list of its own of what differs: a backend gives its traits and its devices.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/device.h"
#include "backends/gpu/stream.h"
#include "runtime/device/backend.h"
#include "runtime/device/gpu_driver.h"
#include "runtime/memory/foreign.h"
#include "runtime/os/asked_once.h"

namespace naru::backends::gpu {

struct Traits {
  const char* name;  // "cuda"
  const runtime::GpuDriver& driver;
  // The kinds that name its devices, its own first. Each has streams and memory of its own.
  std::vector<DeviceType> kinds;
  const char* module_version;  // a file with the version of the kernel's module, which is more precise than the driver's own
  int32_t shared_kind;         // DLPack's device type
  bool library_products;       // a vendor's library computes matrix products
};

class GpuBackend : public runtime::Backend, public runtime::ForeignStreams {
 public:
  ~GpuBackend() override;
  const char* name() const noexcept override { return traits_.name; }
  int device_count(DeviceType kind) noexcept override;
  runtime::Availability probe(DeviceType kind) override;
  // Checked once per driver, devices and version of naru. Later processes find the success in the cache on disk and need not start the
  // driver for it.
  runtime::Availability self_check(DeviceType kind) override;
  runtime::Properties properties(Device device) override;
  std::string libraries(Device device) override;
  size_t free_memory(Device device) override;
  void* allocate(Device device, runtime::MemoryKind kind, size_t bytes) override;
  void release(Device device, runtime::MemoryKind kind, void* memory, size_t bytes) noexcept override;
  std::unique_ptr<runtime::DeviceStream> create_stream(Device device, int priority) override;
  bool can_access_peer(Device from, Device to) override;
  std::optional<runtime::SharedName> shared_name(Device device) override;
  void wait_for_others(Device device) override;
  uint64_t handle_of(runtime::DeviceStream& stream) override;
  StreamPoint behind(Device device, uint64_t handle, std::span<const StreamPoint> before) override;
  runtime::Communicators* communicators(DeviceType kind) override;
  Capabilities capabilities(Device device) override;
  bool takes(Device device, const ir::Instruction& instruction) override;

 protected:
  explicit GpuBackend(Traits traits) : traits_(std::move(traits)) {}
  // The devices of one kind.
  virtual std::unique_ptr<GpuDevices> make_devices(const runtime::GpuProbe& probe) const = 0;
  // "" for a GPU on which all operators have been tested; else what to tell of it.
  virtual std::string untested(const runtime::Gpu& gpu) const = 0;

 private:
  // The result of probing the driver, and its devices. Created at the first query.
  struct Found {
    runtime::GpuProbe probe;
    runtime::Availability state;
    std::map<DeviceType, std::unique_ptr<GpuDevices>> devices;  // empty: none
  };
  Found look() const;
  const Found& found() {
    return found_.get([this] { return look(); });
  }
  bool serves(DeviceType kind) const noexcept;
  GpuDevices& devices(DeviceType kind);
  const runtime::Gpu& gpu(Device device) { return devices(device.type).gpus().at(static_cast<size_t>(device.index)); }
  GpuDevice& at(Device device) { return devices(device.type).at(device); }
  std::string key_of_check(DeviceType kind);
  runtime::Availability check_now(DeviceType kind);

  const Traits traits_;
  runtime::AskedOnce<Found> found_;
  // Per device: streams that only wait for streams of other libraries.
  std::mutex followers_mutex_;
  std::map<std::pair<DeviceType, int>, std::unique_ptr<GpuStream>> followers_;
};

}  // namespace naru::backends::gpu
