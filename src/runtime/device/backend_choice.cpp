#include "runtime/device/backend_choice.h"

#include <fmt/format.h>

#include "naru/error.h"

namespace naru::runtime {

int choose_backend(Backends backends, DeviceType kind, bool simulated, CheckOf check) {
  for (size_t i = 0; i < backends.size(); ++i) {
    if (simulated && !backends[i]->simulated()) continue;
    if (backends[i]->device_count(kind) <= 0) continue;
    if (kind == DeviceType::Cpu || check(i, kind).available) return static_cast<int>(i);
  }
  return -1;
}

Availability why_none(Backends backends, DeviceType kind, CheckOf check) {
  Availability first = unavailable(DriverState::NoBackend, {{"kind", name_of(kind)}});
  bool known = false;
  for (size_t i = 0; i < backends.size(); ++i) {
    Availability a = backends[i]->probe(kind);
    if (a.available && backends[i]->device_count(kind) > 0) a = check(i, kind);
    if (a.available || a.reason.empty()) continue;
    if (backends[i]->simulated()) return a;  // they replace the real devices
    if (known)
      first.reason += fmt::format("; {}: {}", backends[i]->name(), a.reason);
    else
      first = std::move(a), known = true;
  }
  return first;
}

}  // namespace naru::runtime
