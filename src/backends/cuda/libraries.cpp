#include "backends/cuda/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace naru::backends::cuda {
namespace {

struct Version {
  int major;
  const char *nvrtc, *cublaslt;                          // how the files are called
  const char *nvrtc_wheel, *blas_wheel, *headers_wheel;  // their folders in site-packages
};
constexpr Version kVersions[] = {
    {13, "libnvrtc.so.13", "libcublasLt.so.13", "nvidia/cu13/lib", "nvidia/cu13/lib", "nvidia/cu13"},
    {12, "libnvrtc.so.12", "libcublasLt.so.12", "nvidia/cuda_nvrtc/lib", "nvidia/cublas/lib", "nvidia/cuda_runtime"},
    {11, "libnvrtc.so.11.2", "libcublasLt.so.11", "nvidia/cuda_nvrtc/lib", "nvidia/cublas/lib", "nvidia/cuda_runtime"},
};

std::vector<std::string> homes() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value && *value) folders.push_back(value);
  folders.push_back("/usr/local/cuda");
  return folders;
}

// lib: of a Conda environment.
std::vector<std::string> toolkits() {
  std::vector<std::string> folders;
  for (const std::string& home : homes())
    for (const char* folder : {"/lib64", "/lib"}) folders.push_back(home + folder);
  return folders;
}

// Code of a newer CUDA than the driver's is refused by it.
std::vector<Version> versions_for(int driver_version) {
  std::vector<Version> versions(std::begin(kVersions), std::end(kVersions));
  std::stable_partition(versions.begin(), versions.end(), [&](const Version& v) { return v.major <= driver_version / 1000; });
  return versions;
}

}  // namespace

std::vector<std::string> places_of(Product product, int driver_version) {
  std::vector<std::string> places;
  for (const Version& v : versions_for(driver_version)) {
    const bool nvrtc = product == Product::Nvrtc;
    const char *name = nvrtc ? v.nvrtc : v.cublaslt, *wheel = nvrtc ? v.nvrtc_wheel : v.blas_wheel;
    places.push_back(name);
    for (const std::string& folder : toolkits()) places.push_back(folder + "/" + name);
    for (const std::string& folder : runtime::Library::package_folders()) places.push_back(fmt::format("{}/{}/{}", folder, wheel, name));
  }
  return places;
}

std::vector<std::string> include_folders(int driver_version) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    std::error_code none;
    if (std::filesystem::exists(folder + "/cuda_fp16.h", none)) folders.push_back(folder);
  };
  for (const std::string& home : homes()) add(home + "/include");
  for (const Version& v : versions_for(driver_version))
    for (const std::string& folder : runtime::Library::package_folders()) add(fmt::format("{}/{}/include", folder, v.headers_wheel));
  return folders;
}

std::string remedy_of(Product product, int driver_version) {
  // Wheels of CUDA 13 and newer carry no number.
  return fmt::format("pip install nvidia-{}{}, or the CUDA toolkit", product == Product::Nvrtc ? "cuda-nvrtc" : "cublas",
                     driver_version / 1000 >= 13   ? ""
                     : driver_version / 1000 == 12 ? "-cu12"
                                                   : "-cu11");
}

runtime::Library open_library(const char* variable, Product product, int driver_version) {
  const std::vector<std::string> places = places_of(product, driver_version);
  std::vector<const char*> names;
  for (const std::string& p : places) names.push_back(p.c_str());
  return runtime::Library::open(variable, names);
}

}  // namespace naru::backends::cuda
