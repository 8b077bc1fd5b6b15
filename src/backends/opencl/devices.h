// Lists the OpenCL devices of all platforms and their capabilities. A child process queries them, because drivers start threads and open
// device files when queried.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/capabilities.h"
#include "runtime/device/availability.h"

namespace naru::backends::opencl {

struct DeviceInfo {
  int platform = 0, number = 0;  // indices of the platform, and of the device in it
  std::string name, platform_name, driver, version, uuid, pci;
  bool cpu = false, unified = false;
  bool shared = false;  // unified memory that host and device see consistently at all times (fine-grained SVM)
  bool compiler = true;
  Arithmetic arithmetic;                                         // float32 division and root can be exact on request; fma always is
  uint64_t memory = 0, largest_buffer = 0, local_memory = 0;     // bytes
  uint64_t units = 1, group = 1, parameters = 1024, vector = 1;  // vector: preferred width in float32
};

struct Found {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> drivers;   // files to open without a loader; empty: there is one
  std::vector<std::string> left_out;  // platforms and drivers that did not answer, and why
  std::string trouble;                // why there are no devices, if the driver is the cause
  runtime::DriverState state = runtime::DriverState::Works;
};

// Queries once per process.
const Found& found();
// The devices in use. OpenCL devices that are the processor count only with NARU_OPENCL_CPU=1, since device cpu serves it better.
const std::vector<DeviceInfo>& usable();
// Takes devices, given by their places in usable(), out of that list, as their kernels do not run. why: a text for each.
void leave_out(const std::vector<std::pair<size_t, std::string>>& why);
// What was left out, and why; "": nothing.
std::string left_out();
// NARU_OPENCL_WITHOUT=sort,exp: operators that all devices report as unsupported (for tests). Read at the first call.
const std::vector<std::string>& operators_denied();
// Availability of the xpu devices.
runtime::Availability availability();

}  // namespace naru::backends::opencl
