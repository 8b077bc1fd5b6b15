#include "backends/cuda/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "backends/cuda/libraries.h"
#include "naru/error.h"
#include "render/c/launch.h"

namespace naru::backends::cuda {
namespace {

// For the same bits as on other devices: no contraction, denormals kept, division and root rounded correctly.
constexpr const char* kOptions[] = {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "-default-device", "--std=c++17"};

// Marks a user's source for which speed matters more than equal bits, and whose code need not run on other architectures.
constexpr const char* kInexact = "\n#pragma naru inexact";

// The folder that the environment names for kernel sources; "" if none. Debuggers and memory checkers then report source lines.
std::string folder_of_texts() {
  const char* const folder = std::getenv("NARU_KERNEL_TEXTS");
  return folder ? folder : "";
}

std::string file_of(const std::string& source) { return fmt::format("{}/{:016x}.cu", folder_of_texts(), std::hash<std::string>()(source)); }

}  // namespace

Compiler::Compiler(int driver_version) : driver_version_(driver_version), library_(open_library(Product::Nvrtc, driver_version)) {
  const bool all = library_.find(version_, "nvrtcVersion") && library_.find(create_, "nvrtcCreateProgram") &&
                   library_.find(compile_, "nvrtcCompileProgram") && library_.find(destroy_, "nvrtcDestroyProgram") &&
                   library_.find(log_size_, "nvrtcGetProgramLogSize") && library_.find(log_, "nvrtcGetProgramLog") &&
                   library_.find(ptx_size_, "nvrtcGetPTXSize") && library_.find(ptx_, "nvrtcGetPTX") &&
                   library_.find(cubin_size_, "nvrtcGetCUBINSize") && library_.find(cubin_, "nvrtcGetCUBIN") &&
                   library_.find(error_, "nvrtcGetErrorString") && library_.find(count_, "nvrtcGetNumSupportedArchs") &&
                   library_.find(list_, "nvrtcGetSupportedArchs");
  if (!all) return;
  int major = 0, minor = 0, count = 0;
  version_(&major, &minor);
  name_ = fmt::format("NVRTC {}.{}", major, minor);
  if (count_(&count) == 0 && count > 0) {
    known_.resize(static_cast<size_t>(count));
    if (list_(known_.data()) != 0) known_.clear();
    std::sort(known_.begin(), known_.end());
  }
}

std::string Compiler::trouble() const { return library_.trouble(); }
std::string Compiler::remedy() const { return remedy_of(Product::Nvrtc, driver_version_); }
std::string Compiler::options() {
  return fmt::format("{}{}", fmt::join(kOptions, " "), folder_of_texts().empty() ? "" : " --generate-line-info");
}

void Compiler::keep_text(const std::string& source) {
  if (folder_of_texts().empty()) return;
  std::error_code none;
  std::filesystem::create_directories(folder_of_texts(), none);
  std::ofstream(file_of(source)) << source;
}

std::string Compiler::architecture(int major, int minor) const {
  const int wanted = 10 * major + minor;
  if (std::binary_search(known_.begin(), known_.end(), wanted)) return fmt::format("sm_{}", wanted);
  const auto above = std::upper_bound(known_.begin(), known_.end(), wanted);
  return above == known_.begin() ? "" : fmt::format("compute_{}", above[-1]);
}

std::string Compiler::compile(const std::string& source, const std::string& architecture, Device device) const {
  const auto refused = [&](const char* function, int code, const std::string& log) {
    return RuntimeError("device {}: {} refused a kernel ({} failed with {}): {}\n{}", device.str(), name_, function, error_(code), log,
                        source);
  };
  const std::string file = folder_of_texts().empty() ? "" : file_of(source);
  Program program = nullptr;
  if (const int code = create_(&program, source.c_str(), file.empty() ? "kernel.cu" : file.c_str(), 0, nullptr, nullptr); code != 0)
    throw refused("nvrtcCreateProgram", code, "");
  struct Destroy {
    int (*destroy)(Program*);
    Program* program;
    ~Destroy() { destroy(program); }
  } const destroy{destroy_, &program};
  // Architecture-specific features exist from compute capability 9.0 on.
  const bool inexact = source.find(kInexact) != std::string::npos;
  const bool own_features = inexact && architecture.starts_with("sm_") && std::atoi(architecture.c_str() + 3) >= 90;
  const std::string target = "--gpu-architecture=" + architecture + (own_features ? "a" : "");
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  if (inexact) options[0] = "--fmad=true";
  options.push_back(target.c_str());
  if (!file.empty()) options.push_back("--generate-line-info");
  std::vector<std::string> folders;
  if (source.find("#include") != std::string::npos)  // a user kernel
    for (const std::string& folder : include_folders(driver_version_)) folders.push_back("--include-path=" + folder);
  for (const std::string& folder : folders) options.push_back(folder.c_str());
  if (const int code = compile_(program, static_cast<int>(options.size()), options.data()); code != 0) {
    size_t size = 0;
    log_size_(program, &size);
    std::string log(size, '\0');
    if (size > 0) log_(program, log.data());
    throw render::c::CompilerError(refused("nvrtcCompileProgram", code, log.c_str()).what(), "the compiler " + name_, log.c_str());
  }
  const bool machine_code = architecture.starts_with("sm_");
  size_t size = 0;
  if (const int code = (machine_code ? cubin_size_ : ptx_size_)(program, &size); code != 0) throw refused("nvrtcGetCUBINSize", code, "");
  std::string binary(size, '\0');
  if (const int code = (machine_code ? cubin_ : ptx_)(program, binary.data()); code != 0) throw refused("nvrtcGetCUBIN", code, "");
  return binary;
}

}  // namespace naru::backends::cuda
