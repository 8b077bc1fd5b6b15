#include "backends/rocm/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "naru/error.h"

namespace naru::backends::rocm {
namespace {

// For the same bits as on other devices: no contraction, denormals kept. Quotients are rounded correctly without an option; for roots see
// render/c/cuda_cpp.cpp.
constexpr const char* kOptions[] = {"-ffp-contract=off", "-fno-gpu-flush-denormals-to-zero", "-std=c++17", "-w"};

// Functions that are not marked are the device's, as by NVRTC's option -default-device. Lines are counted without this.
constexpr const char* kDefaultDevice = "#pragma clang force_cuda_host_device begin\n#line 1\n";

// Before a user's kernel in naru's dialect, which begins with these types: versions of hipRTC may have others of the same names.
constexpr std::string_view kIntegers = "typedef signed char int8_t;";
constexpr const char* kOwnIntegers =
    "#define int8_t naru_int8_t\n#define int16_t naru_int16_t\n#define int32_t naru_int32_t\n#define int64_t naru_int64_t\n"
    "#define uint8_t naru_uint8_t\n#define uint16_t naru_uint16_t\n#define uint32_t naru_uint32_t\n#define uint64_t naru_uint64_t\n";

// Marks a user's source for which speed matters more than equal bits.
constexpr const char* kInexact = "\n#pragma naru inexact";

runtime::Library open_library(int driver_version) {
  std::vector<int> majors{7, 6, 5};
  std::stable_partition(majors.begin(), majors.end(), [&](int major) { return major == driver_version / 10000000; });
  std::vector<std::string> files;
  for (const int major : majors) {
    // From ROCm 6 on it is a library of its own. Before, that library is there too, but not on all systems.
    for (const char* name : {"libhiprtc.so", "libamdhip64.so"}) {
      if (major > 5 && std::string_view(name) == "libamdhip64.so") continue;
      files.push_back(fmt::format("{}.{}", name, major));
      files.push_back(fmt::format("/opt/rocm/lib/{}.{}", name, major));
    }
  }
  std::vector<const char*> names;
  for (const std::string& f : files) names.push_back(f.c_str());
  return runtime::Library::open("NARU_HIPRTC_LIBRARY", names);
}

}  // namespace

Compiler::Compiler(int driver_version) : gpu::Compiler(open_library(driver_version), "hiprtc", "hipRTC", "hip") {
  find(size_, "GetCodeSize");
  find(code_, "GetCode");
}

std::string Compiler::remedy() const { return "Debian: apt install libamdhip64-5 libhiprtc-builtins5; else AMD's package hip-runtime-amd"; }
std::string Compiler::options() const {
  return fmt::format("{}{}{}{}", kOwnIntegers, kDefaultDevice, fmt::join(kOptions, " "), keeps_texts() ? " -g" : "");
}

std::string Compiler::architecture(const runtime::Gpu& gpu, Device device) const {
  if (gpu.architecture.starts_with("gfx")) return gpu.architecture;
  throw DeviceUnavailableError(fmt::format("device {}: AMD's ROCm does not name the architecture of {}{}. Update it, or use device 'cpu'",
                                           device.str(), gpu.name, gpu.architecture.empty() ? "" : ": " + gpu.architecture));
}

std::string Compiler::compile(const std::string& source, const std::string& architecture, Device device) const {
  std::vector<std::string> options(std::begin(kOptions), std::end(kOptions));
  if (source.find(kInexact) != std::string::npos) options[0] = "-ffp-contract=fast";
  options.push_back("--gpu-architecture=" + architecture);
  if (keeps_texts()) options.push_back("-g");
  return build((source.starts_with(kIntegers) ? kOwnIntegers : "") + (kDefaultDevice + source), options, size_, code_, device);
}

}  // namespace naru::backends::rocm
