// Which OpenCL devices there are, over all platforms, and what they can do. Asked for in a child process: drivers start threads and open
// device files as soon as they are asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/capabilities.h"
#include "runtime/availability.h"

namespace naru::backends::opencl {

struct DeviceInfo {
  int platform = 0, number = 0;  // of the platform, and of the device in it
  std::string name, platform_name, driver, version, uuid, pci;
  bool cpu = false, unified = false;
  bool shared = false;  // unified, and what the host has there and what the device has are the same at all times (fine-grained SVM)
  bool compiler = true;
  Arithmetic arithmetic;                                         // division and root of float32 are exact on request, fma always
  uint64_t memory = 0, largest_buffer = 0, local_memory = 0;     // bytes
  uint64_t units = 1, group = 1, parameters = 1024, vector = 1;  // vector: float32 numbers of one
};

struct Found {
  std::vector<DeviceInfo> devices;
  std::string trouble;  // why there are none, as far as the driver is to blame
  runtime::DriverState state = runtime::DriverState::Works;
};

// Asks once a process.
const Found& found();
// Those in use: OpenCL devices that are the processor itself count only with NARU_OPENCL_CPU=1, since device cpu serves it better.
const std::vector<DeviceInfo>& usable();
// NARU_OPENCL_WITHOUT=sort,exp: operators that no device counts as supporting (for tests). Read at the first question.
const std::vector<std::string>& operators_denied();
// The state the xpu devices are in.
runtime::Availability availability();

}  // namespace naru::backends::opencl
