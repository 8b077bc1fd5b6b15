// The cuda backend: NVIDIA's devices, through their driver and NVRTC, both opened at run time. Tested with a fake driver
// (tests/fakes/cuda.cpp), by compiling its kernels with NVRTC, and on the devices of kTested (docs/gpu-results.md).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/stream.h"
#include "ir/inspect.h"
#include "naru/error.h"
#include "render/c/launch.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/device/self_check.h"
#include "runtime/memory/foreign.h"

namespace naru::backends {
namespace {

using namespace runtime;
using namespace cuda;

// The result of probing the driver, and its devices. Created at the first query.
struct Found {
  GpuProbe probe;
  Availability state;
  std::unique_ptr<CudaDevices> devices;  // null: no devices
};

Found look() {
  Found f{probe_gpus(kDriver), {}, nullptr};
  f.state = f.probe.state;
  if (!f.state.available) return f;
  auto devices = std::make_unique<CudaDevices>(f.probe.gpus, f.probe.version);
  if (const std::string trouble = devices->compiler().trouble(); !trouble.empty()) {
    f.state = unavailable(
        DriverState::NoLibrary,
        {{"detail", trouble}, {"driver", "NVRTC, CUDA's run-time compiler"}, {"install", remedy_of(Product::Nvrtc, f.probe.version)}});
    return f;
  }
  f.devices = std::move(devices);
  return f;
}

// Compute capabilities of GPUs on which all operators have been tested: H100 (docs/gpu-results.md).
constexpr std::pair<int, int> kTested[] = {{9, 0}};
bool was_tested(const Gpu& g) {
  return std::find(std::begin(kTested), std::end(kTested), std::pair{g.major, g.minor}) != std::end(kTested);
}

class CudaBackend final : public Backend, public ForeignStreams {
 public:
  ~CudaBackend() override {
    followers_.clear();
    delete found_.load();
  }
  const char* name() const noexcept override { return "cuda"; }

  int device_count(DeviceType kind) noexcept override {
    if (kind != DeviceType::Cuda) return 0;
    try {
      const Found& f = found();
      return f.devices ? static_cast<int>(f.devices->gpus().size()) : 0;
    } catch (const std::exception&) {
      return 0;
    }
  }
  Availability probe(DeviceType kind) override { return kind == DeviceType::Cuda ? found().state : Availability{}; }
  // Checked once per driver, devices and version of naru. Later processes find the success in the cache on disk and need not start the
  // driver for it.
  Availability self_check(DeviceType kind) override {
    const std::string key = key_of_check();
    const char* const wanted = std::getenv("NARU_SELF_CHECK");
    if (!(wanted && *wanted) && kernel_cache().find(key)) return {true, "", ""};
    Availability a = check_now(kind);
    if (a.available) kernel_cache().store(key, "right");
    return a;
  }

  Properties properties(Device device) override {
    const Gpu& g = gpu(device);
    Properties p;
    p.name = g.name;
    p.total_memory = g.memory;
    p.driver = found().probe.driver;
    p.tested_on_hardware = was_tested(g);
    p.uuid = g.uuid;
    p.pci = g.pci;
    p.multi_processor_count = g.multiprocessors;
    p.major = g.major, p.minor = g.minor;
    p.warp_size = g.limits.warp;
    p.max_threads_per_block = g.limits.threads_of_block;
    p.max_threads_per_multi_processor = g.limits.threads_of_multiprocessor;
    p.regs_per_multiprocessor = g.limits.registers_of_multiprocessor;
    p.shared_memory_per_block = static_cast<size_t>(g.limits.shared_of_block);
    p.l2_cache_size = static_cast<size_t>(g.limits.l2);
    return p;
  }
  std::string libraries(Device device) override {
    const CudaDevices& d = devices();
    const std::string known = d.compiler().name() + ", " + d.libraries().text();
    return was_tested(gpu(device)) ? known : known + "; never run by naru's authors on a GPU of its compute capability";
  }

  size_t free_memory(Device device) override { return devices().at(device).free_memory(); }
  void* allocate(Device device, MemoryKind kind, size_t bytes) override {
    CudaDevice& d = devices().at(device);
    return kind == MemoryKind::Pinned ? d.allocate_pinned(bytes) : d.allocate(bytes);
  }
  void release(Device device, MemoryKind kind, void* memory, size_t) noexcept override {
    CudaDevice& d = devices().at(device);
    kind == MemoryKind::Pinned ? d.release_pinned(memory) : d.release(memory);
  }
  std::unique_ptr<DeviceStream> create_stream(Device device, int priority) override {
    return std::make_unique<CudaStream>(devices().at(device), devices(), priority);
  }
  bool can_access_peer(Device from, Device to) override { return from != to && devices().at(to).reach(devices().at(from)); }
  std::optional<SharedName> shared_name(Device device) override {
    constexpr int32_t kDlCuda = 2;
    return SharedName{kDlCuda, devices().at(device).driver_number()};
  }
  void wait_for_others(Device device) override { devices().at(device).synchronize_context(); }
  uint64_t handle_of(DeviceStream& stream) override { return static_cast<CudaStream&>(stream).handle(); }
  StreamPoint behind(Device device, uint64_t handle, std::span<const StreamPoint> before) override {
    CudaDevice& d = devices().at(device);
    d.check_usable();
    const std::lock_guard lock(followers_mutex_);
    std::unique_ptr<CudaStream>& follower = followers_[device.index];
    if (!follower) {
      follower = std::make_unique<CudaStream>(d, devices(), 0);
      follower->belong_to(device, follower->errors());
    }
    for (const StreamPoint& m : before)
      if (m.stream && m.stream != follower.get()) follower->wait(*m.stream, m.seq);
    return {follower.get(), follower->follow(handle)};
  }
  runtime::Communicators* communicators() override { return found().devices ? &found().devices->communicators() : nullptr; }
  Capabilities capabilities(Device device) override {
    Capabilities c;
    c.row_fused = c.maps_each = c.reduces_together = c.cuda_source = c.library_products = true;
    c.longest_chosen_row = render::c::longest_chosen_row(devices().at(device).target());
    for (const char* op : ir::host_only_names()) c.exclude_host_only(op);
    return c;
  }
  bool takes(Device device, const ir::Instruction& instruction) override { return devices().at(device).takes(instruction); }

 private:
  std::string key_of_check() {
    const Found& f = found();
    std::string module, devices;
    std::ifstream("/sys/module/nvidia/version") >> module;  // more precise than the driver's own version
    for (const Gpu& g : f.probe.gpus) devices += g.uuid + " ";
    return KernelCache::key("self-check", f.probe.driver + " " + module, devices + (f.devices ? f.devices->compiler().name() : ""));
  }
  Availability check_now(DeviceType kind) {
    if (found().probe.in_use) return Backend::self_check(kind);
    Availability a = check_in_child(*this, kind);
    // Another library of this process may have initialised the driver since the probe; then a child process can't use it.
    return !a.available && CudaDevices::driver_in_use() ? Backend::self_check(kind) : a;
  }
  const Found& found() {
    // No lock, because a forked child could inherit it locked. If two threads query at once, both probe.
    if (const Found* f = found_.load(std::memory_order_acquire)) return *f;
    auto made = std::make_unique<Found>(look());
    const Found* none = nullptr;
    if (found_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *none;
  }
  CudaDevices& devices() {
    const Found& f = found();
    if (!f.devices) throw DeviceUnavailableError("cuda has no devices");
    return *f.devices;
  }
  const Gpu& gpu(Device device) { return devices().gpus().at(static_cast<size_t>(device.index)); }

  std::atomic<const Found*> found_{nullptr};
  // Per device: streams that only wait for streams of other libraries.
  std::mutex followers_mutex_;
  std::map<int, std::unique_ptr<CudaStream>> followers_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda() { return std::make_unique<CudaBackend>(); }

}  // namespace naru::backends
