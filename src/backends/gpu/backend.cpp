#include "backends/gpu/backend.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "naru/error.h"
#include "render/c/launch.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/device/self_check.h"

namespace naru::backends::gpu {

using namespace runtime;

GpuBackend::~GpuBackend() {
  followers_.clear();
  delete found_.take();
}

GpuBackend::Found GpuBackend::look() const {
  Found f{probe_gpus(traits_.driver), {}, {}};
  f.state = f.probe.state;
  if (!f.state.available) return f;
  for (const DeviceType kind : traits_.kinds) {
    auto devices = make_devices(f.probe);
    if (const Compiler& c = devices->compiler(); !c.trouble().empty()) {
      f.state = unavailable(DriverState::NoLibrary, {{"detail", c.trouble()}, {"driver", c.words()}, {"install", c.remedy()}});
      return f;
    }
    f.devices.emplace(kind, std::move(devices));
  }
  return f;
}

bool GpuBackend::serves(DeviceType kind) const noexcept {
  return std::find(traits_.kinds.begin(), traits_.kinds.end(), kind) != traits_.kinds.end();
}

GpuDevices& GpuBackend::devices(DeviceType kind) {
  const Found& f = found();
  const auto at = f.devices.find(kind);
  if (at == f.devices.end()) throw DeviceUnavailableError(std::string(traits_.name) + " has no devices");
  return *at->second;
}

int GpuBackend::device_count(DeviceType kind) noexcept {
  if (!serves(kind)) return 0;
  try {
    const Found& f = found();
    return f.devices.empty() ? 0 : static_cast<int>(f.devices.at(kind)->gpus().size());
  } catch (const std::exception&) {
    return 0;
  }
}

Availability GpuBackend::probe(DeviceType kind) {
  if (!serves(kind)) return {};
  const Availability& state = found().state;
  // Of a kind that is first of all another backend's, that one says what is missing.
  return state.available || kind == traits_.kinds.front() ? state : Availability{};
}

Availability GpuBackend::self_check(DeviceType kind) {
  const std::string key = key_of_check(kind);
  const char* const wanted = std::getenv("NARU_SELF_CHECK");
  if (!(wanted && *wanted) && kernel_cache().find(key)) return {true, "", ""};
  Availability a = check_now(kind);
  if (a.available) kernel_cache().store(key, "right");
  return a;
}

std::string GpuBackend::key_of_check(DeviceType kind) {
  const Found& f = found();
  std::string module, gpus;
  std::ifstream(traits_.module_version) >> module;
  for (const Gpu& g : f.probe.gpus) gpus += g.uuid + g.architecture + " ";
  return KernelCache::key("self-check", f.probe.driver + " " + module,
                          gpus + (f.devices.empty() ? "" : f.devices.at(kind)->compiler().name()));
}

Availability GpuBackend::check_now(DeviceType kind) {
  if (found().probe.in_use) return Backend::self_check(kind);
  Availability a = check_in_child(*this, kind);
  // Another library of this process may have initialised the driver since the probe; then a child process can't use it.
  return !a.available && devices(kind).driver_in_use() ? Backend::self_check(kind) : a;
}

Properties GpuBackend::properties(Device device) {
  const Gpu& g = gpu(device);
  Properties p;
  p.name = g.name;
  p.total_memory = g.memory;
  p.driver = found().probe.driver;
  p.tested_on_hardware = untested(g).empty();
  p.uuid = g.uuid;
  p.pci = g.pci;
  p.architecture = g.architecture;
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

std::string GpuBackend::libraries(Device device) {
  const std::string known = devices(device.type).libraries(), untold = untested(gpu(device));
  return untold.empty() ? known : known + "; " + untold;
}

size_t GpuBackend::free_memory(Device device) { return at(device).free_memory(); }

void* GpuBackend::allocate(Device device, MemoryKind kind, size_t bytes) {
  GpuDevice& d = at(device);
  return kind == MemoryKind::Pinned ? d.allocate_pinned(bytes) : d.allocate(bytes);
}

void GpuBackend::release(Device device, MemoryKind kind, void* memory, size_t) noexcept {
  GpuDevice& d = at(device);
  kind == MemoryKind::Pinned ? d.release_pinned(memory) : d.release(memory);
}

std::unique_ptr<DeviceStream> GpuBackend::create_stream(Device device, int priority) {
  return std::make_unique<GpuStream>(at(device), devices(device.type), priority);
}

bool GpuBackend::can_access_peer(Device from, Device to) { return from != to && from.type == to.type && at(to).reach(at(from)); }
std::optional<SharedName> GpuBackend::shared_name(Device device) { return SharedName{traits_.shared_kind, at(device).driver_number()}; }
void GpuBackend::wait_for_others(Device device) { at(device).synchronize_context(); }
uint64_t GpuBackend::handle_of(DeviceStream& stream) { return static_cast<GpuStream&>(stream).handle(); }

StreamPoint GpuBackend::behind(Device device, uint64_t handle, std::span<const StreamPoint> before) {
  GpuDevice& d = at(device);
  d.check_usable();
  const std::lock_guard lock(followers_mutex_);
  std::unique_ptr<GpuStream>& follower = followers_[{device.type, device.index}];
  if (!follower) {
    follower = std::make_unique<GpuStream>(d, devices(device.type), 0);
    follower->belong_to(device, follower->errors());
  }
  for (const StreamPoint& m : before)
    if (m.stream && m.stream != follower.get()) follower->wait(*m.stream, m.seq);
  return {follower.get(), follower->follow(handle)};
}

Communicators* GpuBackend::communicators(DeviceType kind) { return found().devices.empty() ? nullptr : devices(kind).communicators(); }

Capabilities GpuBackend::capabilities(Device device) {
  Capabilities c = render::c::capabilities_of(at(device).target());
  c.maps_each = c.cuda_source = true;
  c.library_products = traits_.library_products;
  return c;
}

bool GpuBackend::takes(Device device, const ir::Instruction& instruction) { return at(device).takes(instruction); }

}  // namespace naru::backends::gpu
