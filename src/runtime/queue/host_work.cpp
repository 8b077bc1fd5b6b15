#include "runtime/queue/host_work.h"

#include "runtime/device/registry.h"

namespace naru::runtime {

HostWork& host_work() {
  static HostWork& of_cpu = *backend_of(DeviceType::Cpu).host_work();
  return of_cpu;
}

}  // namespace naru::runtime
