// The metal backend: Apple's GPUs, devices of kind mps, through Metal, which is opened at run time. It never ran on one. It is tested with a stand-in of
// Objective-C's run time and of Metal (tests/fakes/metal.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "backends/metal/stream.h"
#include "naru/error.h"
#include "render/c/launch.h"

namespace naru::backends {
namespace {

using namespace runtime;
using namespace metal;

constexpr size_t kMostDevices = 16;

// The device of an index; opened on first use and never closed.
MetalDevice& device_of(Device device) {
  static std::mutex mutex;
  static auto* const opened = new std::array<std::unique_ptr<MetalDevice>, kMostDevices>;
  const auto i = static_cast<size_t>(device.index);
  const std::lock_guard lock(mutex);
  if (i >= std::min(found().devices.size(), kMostDevices)) throw DeviceUnavailableError("Metal has no device " + device.str());
  if (!(*opened)[i]) (*opened)[i] = std::make_unique<MetalDevice>(device, found().devices[i]);
  return *(*opened)[i];
}

class MetalBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "metal"; }

  int device_count(DeviceType kind) noexcept override {
    if (kind != DeviceType::Mps) return 0;
    try {
      return static_cast<int>(std::min(found().devices.size(), kMostDevices));
    } catch (const std::exception&) {
      return 0;
    }
  }

  Availability probe(DeviceType kind) override { return kind == DeviceType::Mps ? found().state : Availability{}; }

  Properties properties(Device device) override {
    const DeviceInfo& d = found().devices.at(static_cast<size_t>(device.index));
    Properties p;
    p.name = d.name;
    p.total_memory = d.memory;
    p.largest_piece = d.largest_buffer;
    p.integrated = true;
    p.driver = "Metal, macOS " + d.system;
    p.uuid = fmt::format("{:016x}", d.registry_id);
    p.architecture = d.architecture;
    p.warp_size = 32;
    p.max_threads_per_block = 1024;
    p.shared_memory_per_block = d.group_memory;
    return p;
  }

  std::string libraries(Device device) override {
    const bool shaders = found().devices.at(static_cast<size_t>(device.index)).shaders;
    return std::string(shaders ? "MetalPerformanceShaders, own kernels for convolutions" : "own kernels for products and convolutions") +
           "; never run by naru's authors on a GPU of Apple's";
  }
  size_t free_memory(Device device) override { return device_of(device).free_memory(); }

  Capabilities capabilities(Device device) override {
    Capabilities c = render::c::capabilities_of(device_of(device).target());
    c.unified_memory = true;
    c.library_products = device_of(device).info().shaders;
    return c;
  }

  // Memory of either kind is the same: the host's and the device's.
  void* allocate(Device device, MemoryKind, size_t bytes) override { return device_of(device).allocate(bytes); }
  void release(Device device, MemoryKind, void* memory, size_t) noexcept override { device_of(device).release(memory); }
  std::unique_ptr<DeviceStream> create_stream(Device device, int) override { return std::make_unique<MetalStream>(device_of(device)); }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_metal() { return std::make_unique<MetalBackend>(); }

}  // namespace naru::backends
