#include "backends/cuda/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/libraries.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

// For the same bits as on other devices: no contraction, denormals kept, division and root rounded correctly.
constexpr const char* kOptions[] = {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "-default-device", "--std=c++17"};

// Marks a user's source for which speed matters more than equal bits, and whose code need not run on other architectures.
constexpr const char* kInexact = "\n#pragma naru inexact";

}  // namespace

Compiler::Compiler(int driver_version, bool lines)
    : gpu::Compiler(open_library(Product::Nvrtc, driver_version), "nvrtc", "NVRTC", "cu"), driver_version_(driver_version), lines_(lines) {
  const bool all = find(count_, "GetNumSupportedArchs") && find(list_, "GetSupportedArchs") && find(ptx_size_, "GetPTXSize") &&
                   find(ptx_, "GetPTX") && find(cubin_size_, "GetCUBINSize") && find(cubin_, "GetCUBIN");
  int count = 0;
  if (!all || count_(&count) != 0 || count <= 0) return;
  known_.resize(static_cast<size_t>(count));
  if (list_(known_.data()) != 0) known_.clear();
  std::sort(known_.begin(), known_.end());
}

std::string Compiler::remedy() const { return remedy_of(Product::Nvrtc, driver_version_); }
std::string Compiler::options() const { return fmt::format("{}{}", fmt::join(kOptions, " "), lines_ ? " --generate-line-info" : ""); }

std::string Compiler::architecture(int major, int minor) const {
  const int wanted = 10 * major + minor;
  if (std::binary_search(known_.begin(), known_.end(), wanted)) return fmt::format("sm_{}", wanted);
  const auto above = std::upper_bound(known_.begin(), known_.end(), wanted);
  return above == known_.begin() ? "" : fmt::format("compute_{}", above[-1]);
}

std::string Compiler::architecture(const runtime::Gpu& gpu, Device device) const {
  const std::string found = architecture(gpu.major, gpu.minor);
  if (!found.empty()) return found;
  throw DeviceUnavailableError(
      fmt::format("device {}: {} makes no code for {}, of compute capability {}.{}. Install an older one (pip install "
                  "nvidia-cuda-nvrtc-cu12) and name its file in NARU_NVRTC_LIBRARY, or use device 'cpu'",
                  device.str(), name(), gpu.name, gpu.major, gpu.minor));
}

std::string Compiler::compile(const std::string& source, const std::string& architecture, Device device) const {
  // Architecture-specific features exist from compute capability 9.0 on.
  const bool inexact = source.find(kInexact) != std::string::npos, machine_code = architecture.starts_with("sm_");
  const bool own_features = inexact && machine_code && std::atoi(architecture.c_str() + 3) >= 90;
  std::vector<std::string> options(std::begin(kOptions), std::end(kOptions));
  if (inexact) options[0] = "--fmad=true";
  options.push_back("--gpu-architecture=" + architecture + (own_features ? "a" : ""));
  if (lines_) options.push_back("--generate-line-info");
  if (source.find("#include") != std::string::npos)  // a user kernel
    for (const std::string& folder : include_folders(driver_version_)) options.push_back("--include-path=" + folder);
  return build(source, options, machine_code ? cubin_size_ : ptx_size_, machine_code ? cubin_ : ptx_, device);
}

}  // namespace naru::backends::cuda

namespace naru::backends::gpu {

std::unique_ptr<Compiler> make_ptx_compiler(std::string& architecture) {
  constexpr int kNewest = 13000;  // the code is for no driver: any NVRTC will do
  auto compiler = std::make_unique<cuda::Compiler>(kNewest, true);
  architecture = compiler->trouble().empty() ? compiler->architecture(9, 0) : "";
  if (architecture.starts_with("sm_")) architecture.replace(0, 3, "compute_");
  return compiler;
}

}  // namespace naru::backends::gpu
