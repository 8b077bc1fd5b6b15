// The opencl backend: devices of kind xpu. Any device with OpenCL 1.2 and a compiler, on all platforms. Run on PoCL (a processor) and on an
// H100 (docs/gpu-results.md).
#include <array>
#include <utility>
#include <vector>

#include "backends/opencl/device.h"
#include "backends/opencl/stream.h"
#include "naru/error.h"
#include "render/c/launch.h"
#include "runtime/device/self_check.h"

namespace naru::backends {
namespace {

using namespace runtime;
using namespace opencl;

constexpr size_t kMostDevices = 128;

// The device of an index; opened on first use and never closed. An index keeps its device, even if the environment changes later.
OpenClDevice& device_of(Device device) {
  static std::mutex mutex;
  static auto* const opened = new std::array<std::unique_ptr<OpenClDevice>, kMostDevices>;
  const auto i = static_cast<size_t>(device.index);
  const std::lock_guard lock(mutex);
  if (i < kMostDevices && (*opened)[i]) return *(*opened)[i];
  const std::vector<DeviceInfo>& list = usable();
  if (i >= list.size() || i >= kMostDevices) throw DeviceUnavailableError("OpenCL has no device " + device.str());
  (*opened)[i] = std::make_unique<OpenClDevice>(device, list[i]);
  return *(*opened)[i];
}

// The tests run on PoCL's processors; all operators have been tested on an H100 (docs/gpu-results.md).
bool was_tested(const DeviceInfo& d) { return d.cpu || d.name.find("H100") != std::string::npos; }

class OpenClBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "opencl"; }

  int device_count(DeviceType kind) noexcept override {
    if (kind != DeviceType::Xpu) return 0;
    try {
      return static_cast<int>(std::min(usable().size(), kMostDevices));
    } catch (const std::exception&) {
      return 0;
    }
  }

  Availability probe(DeviceType kind) override { return kind == DeviceType::Xpu ? availability() : Availability{}; }

  // A device whose kernels do not run is left out, unless it is the only one.
  Availability self_check(DeviceType kind) override {
    Availability all = check_in_child(*this, kind);
    const int count = device_count(kind);
    if (all.available || count < 2) return all;
    std::vector<std::pair<size_t, std::string>> wrong;
    for (int i = 0; i < count; ++i)
      if (const Availability one = check_in_child(*this, Device(kind, i)); !one.available)
        wrong.emplace_back(static_cast<size_t>(i), one.reason);
    if (wrong.size() == static_cast<size_t>(count)) return all;
    leave_out(wrong);
    return {true, "", ""};
  }

  Properties properties(Device device) override {
    const DeviceInfo& d = usable().at(static_cast<size_t>(device.index));
    Properties p;
    p.name = d.name;
    p.total_memory = d.memory;
    p.integrated = d.unified;
    p.largest_piece = d.largest_buffer;
    p.on_host = d.cpu;
    p.driver = d.platform_name + " " + d.driver;
    p.tested_on_hardware = was_tested(d);
    p.uuid = d.uuid;
    p.pci = d.pci;
    p.multi_processor_count = static_cast<int>(d.units);
    p.max_threads_per_block = static_cast<int>(d.group);
    p.shared_memory_per_block = d.local_memory;
    // "OpenCL 3.0 ..."
    if (std::sscanf(d.version.c_str(), "OpenCL %d.%d", &p.major, &p.minor) != 2) p.major = 1, p.minor = 2;
    return p;
  }

  std::string libraries(Device device) override {
    const DeviceInfo& d = usable().at(static_cast<size_t>(device.index));
    const std::string without = left_out();
    return std::string(d.cpu           ? "own kernels (tested on a processor, through PoCL)"
                       : was_tested(d) ? "own kernels"
                                       : "own kernels (never run by naru's authors on this GPU)") +
           (without.empty() ? "" : "; left out: " + without);
  }

  size_t free_memory(Device device) override { return device_of(device).free_memory(); }
  Capabilities capabilities(Device device) override {
    const DeviceInfo& d = usable().at(static_cast<size_t>(device.index));
    Capabilities c = render::c::capabilities_of(device_of(device).target());
    c.unified_memory = d.shared;
    for (const std::string& op : operators_denied()) c.exclude(op);
    return c;
  }

  void* allocate(Device device, MemoryKind kind, size_t bytes) override {
    OpenClDevice& d = device_of(device);
    return kind == MemoryKind::Pinned ? d.allocate_pinned(bytes) : d.allocate(bytes);
  }
  void release(Device device, MemoryKind kind, void* memory, size_t) noexcept override {
    OpenClDevice& d = device_of(device);
    kind == MemoryKind::Pinned ? d.release_pinned(memory) : d.release(memory);
  }
  std::unique_ptr<DeviceStream> create_stream(Device device, int) override { return std::make_unique<OpenClStream>(device_of(device)); }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_opencl() { return std::make_unique<OpenClBackend>(); }

}  // namespace naru::backends
