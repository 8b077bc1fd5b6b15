#include "naru/device/devices.h"

#include "naru/error.h"

#include "runtime/device/peer.h"
#include "runtime/device/registry.h"

namespace naru {

int device_count(DeviceType kind) { return runtime::device_count(kind); }
bool is_available(DeviceType kind) { return runtime::availability(kind).available; }

std::string why_unavailable(DeviceType kind) {
  const runtime::Availability a = runtime::availability(kind);
  if (a.available) return "";
  return a.remedy.empty() ? a.reason : a.reason + ". " + a.remedy;
}

DeviceProperties get_device_properties(Device device) {
  const Device d = runtime::resolve(device);
  const runtime::Properties p = runtime::properties(d);
  const runtime::Backend& backend = runtime::backend_of(d.type);
  const Capabilities can = runtime::backend_of(d.type).capabilities(d);
  DeviceProperties out;
  out.name = p.name, out.backend = backend.name(), out.driver = p.driver, out.libraries = p.libraries, out.uuid = p.uuid, out.pci = p.pci;
  out.total_memory = p.total_memory;
  out.integrated = p.integrated || can.unified_memory;
  out.simulated = backend.simulated(), out.tested_on_hardware = p.tested_on_hardware;
  out.major = p.major, out.minor = p.minor, out.multi_processor_count = p.multi_processor_count, out.warp_size = p.warp_size;
  out.max_threads_per_block = p.max_threads_per_block, out.max_threads_per_multi_processor = p.max_threads_per_multi_processor;
  out.regs_per_multiprocessor = p.regs_per_multiprocessor, out.clock_rate = p.clock_rate;
  out.shared_memory_per_block = p.shared_memory_per_block, out.l2_cache_size = p.l2_cache_size;
  out.float64 = can.supports(DType::F64), out.float16 = can.supports(DType::F16), out.bfloat16 = can.supports(DType::BF16);
  return out;
}

int current_device(DeviceType kind) { return runtime::current_device(kind); }
void set_device(Device device, SourceLocation where) {
  const Device found = detail::with_location(where, [&] { return runtime::resolve(device); });
  if (!found.is_cpu()) runtime::set_current_device(found.type, found.index);
}

DeviceGuard::DeviceGuard(Device device, SourceLocation where)
    : before_(device.type, device.is_cpu() ? -1 : runtime::current_device(device.type)) {
  set_device(device, where);
}
DeviceGuard::~DeviceGuard() {
  if (!before_.is_cpu() && before_.has_index()) runtime::set_current_device(before_.type, before_.index);
}

bool can_access_peer(Device device, Device peer) {
  const Device from = runtime::resolve(peer), to = runtime::resolve(device);
  return from != to && runtime::peer_works(from, to);
}

std::string device_name(Device device) { return runtime::properties(runtime::resolve(device)).name; }

void synchronize(Device device) { runtime::synchronize(runtime::resolve(device)); }
void set_virtual_devices(const std::string& spec) { runtime::set_virtual_devices(spec); }
std::string virtual_devices() { return runtime::virtual_devices(); }

}  // namespace naru
