#include "backends/cuda/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "runtime/os/system.h"

namespace naru::backends::cuda {
namespace {

// A library's file, and the folder of its wheel within site-packages.
struct File {
  runtime::PerSystem name;
  const char* folder;
};
struct LibraryRow {
  const char *label, *variable, *wheel, *without;
  File of[3];  // for CUDA 13, 12 and 11
  // Most wheels for CUDA 13 and newer have no version suffix, and most libraries are part of the toolkit.
  const char *number = "", *otherwise = "the CUDA toolkit";
};
// In the order of Product. NVIDIA has nothing for macOS. The names on Windows: NVIDIA's wheels and its documentation of CUDA 11 to 13.
constexpr const char* kNone = nullptr;
constexpr LibraryRow kLibraries[] = {
    {"NVRTC",
     "NARU_NVRTC_LIBRARY",
     "cuda-nvrtc",
     "no kernels",
     {{{"libnvrtc.so.13", kNone, "nvrtc64_130_0.dll"}, "nvidia/cu13"},
      {{"libnvrtc.so.12", kNone, "nvrtc64_120_0.dll"}, "nvidia/cuda_nvrtc"},
      {{"libnvrtc.so.11.2", kNone, "nvrtc64_112_0.dll"}, "nvidia/cuda_nvrtc"}}},
    {"cuBLASLt",
     "NARU_CUBLASLT_LIBRARY",
     "cublas",
     "own kernels for products",
     {{{"libcublasLt.so.13", kNone, "cublasLt64_13.dll"}, "nvidia/cu13"},
      {{"libcublasLt.so.12", kNone, "cublasLt64_12.dll"}, "nvidia/cublas"},
      {{"libcublasLt.so.11", kNone, "cublasLt64_11.dll"}, "nvidia/cublas"}}},
    {"cuFFT",
     "NARU_CUFFT_LIBRARY",
     "cufft",
     "Fourier transforms on the cpu",
     {{{"libcufft.so.12", kNone, "cufft64_12.dll"}, "nvidia/cu13"},
      {{"libcufft.so.11", kNone, "cufft64_11.dll"}, "nvidia/cufft"},
      {{"libcufft.so.10", kNone, "cufft64_10.dll"}, "nvidia/cufft"}}},
    {"cuSOLVER",
     "NARU_CUSOLVER_LIBRARY",
     "cusolver",
     "linear algebra on the cpu",
     {{{"libcusolver.so.12", kNone, "cusolver64_12.dll"}, "nvidia/cu13"},
      {{"libcusolver.so.11", kNone, "cusolver64_11.dll"}, "nvidia/cusolver"},
      {{"libcusolver.so.11", kNone, "cusolver64_11.dll"}, "nvidia/cusolver"}}},
    {"cuDNN",
     "NARU_CUDNN_LIBRARY",
     "cudnn",
     "own kernels for convolutions",
     {{{"libcudnn.so.9", kNone, "cudnn64_9.dll"}, "nvidia/cudnn"},
      {{"libcudnn.so.9", kNone, "cudnn64_9.dll"}, "nvidia/cudnn"},
      {{"libcudnn.so.9", kNone, "cudnn64_9.dll"}, "nvidia/cudnn"}},
     "-cu13",
     "NVIDIA's package of cuDNN 9"},
    {"NCCL",
     "NARU_NCCL_LIBRARY",
     "nccl",
     "process groups through the host's memory",
     {{{"libnccl.so.2"}, "nvidia/nccl"}, {{"libnccl.so.2"}, "nvidia/nccl"}, {{"libnccl.so.2"}, "nvidia/nccl"}},
     "-cu13",
     "NVIDIA's package of NCCL"},
};
static_assert(std::size(kLibraries) == kProducts);
const LibraryRow& row_of(Product product) { return kLibraries[static_cast<size_t>(product)]; }

struct Version {
  int major;
  size_t column;              // in LibraryRow::of
  const char* headers_wheel;  // its folder in site-packages
};
constexpr Version kVersions[] = {{13, 0, "nvidia/cu13"}, {12, 1, "nvidia/cuda_runtime"}, {11, 2, "nvidia/cuda_runtime"}};

std::vector<std::string> homes() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value && *value) folders.push_back(value);
  folders.push_back("/usr/local/cuda");
  return folders;
}

// lib: in a Conda environment. bin/x64: from CUDA 13 on.
std::vector<std::string> toolkits() {
  std::vector<std::string> folders;
  for (const std::string& home : homes())
    for (const char* folder : {runtime::system::own("/lib64", "", "/bin/x64"), runtime::system::own("/lib", "", "/bin")})
      folders.push_back(home + folder);
  return folders;
}

// Where a wheel's folder has its libraries. On Windows, the wheels that share CUDA 13's folder have them apart by processor.
const char* libraries_in(const File& file) {
  return runtime::system::own("lib", "", std::string_view(file.folder) == "nvidia/cu13" ? "bin/x86_64" : "bin");
}

// The driver rejects code of a newer CUDA version than its own.
std::vector<Version> versions_for(int driver_version) {
  std::vector<Version> versions(std::begin(kVersions), std::end(kVersions));
  std::stable_partition(versions.begin(), versions.end(), [&](const Version& v) { return v.major <= driver_version / 1000; });
  return versions;
}

}  // namespace

std::vector<std::string> places_of(Product product, int driver_version) {
  std::vector<std::string> places;
  for (const Version& v : versions_for(driver_version)) {
    const File& file = row_of(product).of[v.column];
    const char* const name = file.name.here();
    if (!name) continue;
    // Wheels first: another package (PyTorch, CuPy) that this process imports later opens them, and a process has only one library of a
    // name.
    for (const std::string& folder : runtime::Library::package_folders())
      places.push_back(fmt::format("{}/{}/{}/{}", folder, file.folder, libraries_in(file), name));
    places.push_back(name);
    for (const std::string& folder : toolkits()) places.push_back(folder + "/" + name);
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

const char* label_of(Product product) { return row_of(product).label; }
const char* without(Product product) { return row_of(product).without; }

std::string remedy_of(Product product, int driver_version) {
  const int major = driver_version / 1000;
  const LibraryRow& row = row_of(product);
  return fmt::format("pip install nvidia-{}{}, or {}", row.wheel,
                     major >= 13   ? row.number
                     : major == 12 ? "-cu12"
                                   : "-cu11",
                     row.otherwise);
}

runtime::Library open_library(Product product, int driver_version) {
  const std::vector<std::string> places = places_of(product, driver_version);
  std::vector<const char*> names;
  for (const std::string& p : places) names.push_back(p.c_str());
  std::vector<const char*> loaded;
  for (const Version& v : versions_for(driver_version))
    if (const char* name = row_of(product).of[v.column].name.here()) loaded.push_back(name);
  return runtime::Library::open(row_of(product).variable, names, loaded);
}

}  // namespace naru::backends::cuda
