// The metal backend, for kind mps. Not implemented yet; it can only exist on macOS.
#include "runtime/device/unusable_backend.h"
#include "runtime/os/system.h"

namespace naru::backends {
namespace {

runtime::Availability ask() {
  if (runtime::system::kMetal)
    return unavailable(runtime::DriverState::NoKernels, {{"driver", "Metal"}, {"devices", "macOS"}, {"kind", "mps"}});
  return unavailable(runtime::DriverState::OtherSystem, {{"system", "macOS and an Apple GPU"}, {"kind", "mps"}});
}

}  // namespace

std::unique_ptr<runtime::Backend> make_metal() { return std::make_unique<runtime::UnusableBackend>("metal", DeviceType::Mps, ask); }

}  // namespace naru::backends
