#include "naru/devices.h"

#include "runtime/registry.h"

namespace naru {

int device_count(DeviceType kind) { return runtime::device_count(kind); }
bool is_available(DeviceType kind) { return runtime::availability(kind).available; }

std::string why_unavailable(DeviceType kind) {
  const runtime::Availability a = runtime::availability(kind);
  if (a.available) return "";
  return a.remedy.empty() ? a.reason : a.reason + ". " + a.remedy;
}

std::string device_name(Device device) { return runtime::properties(runtime::resolve(device)).name; }

void synchronize(Device device) { runtime::synchronize(runtime::resolve(device)); }
void set_virtual_devices(const std::string& spec) { runtime::set_virtual_devices(spec); }

}  // namespace naru
