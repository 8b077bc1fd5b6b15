#include "backends/cuda/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace naru::backends::cuda {
namespace {

// A library file, and its folder within site-packages.
struct File {
  const char *name, *folder;
};
struct LibraryRow {
  const char *label, *variable, *wheel, *without;
  File of[3];  // for CUDA 13, 12 and 11
  // Most wheels for CUDA 13 and newer have no version suffix, and most libraries are part of the toolkit.
  const char *number = "", *otherwise = "the CUDA toolkit";
};
// In the order of Product.
constexpr LibraryRow kLibraries[] = {
    {"NVRTC",
     "NARU_NVRTC_LIBRARY",
     "cuda-nvrtc",
     "no kernels",
     {{"libnvrtc.so.13", "nvidia/cu13/lib"}, {"libnvrtc.so.12", "nvidia/cuda_nvrtc/lib"}, {"libnvrtc.so.11.2", "nvidia/cuda_nvrtc/lib"}}},
    {"cuBLASLt",
     "NARU_CUBLASLT_LIBRARY",
     "cublas",
     "own kernels for products",
     {{"libcublasLt.so.13", "nvidia/cu13/lib"}, {"libcublasLt.so.12", "nvidia/cublas/lib"}, {"libcublasLt.so.11", "nvidia/cublas/lib"}}},
    {"cuFFT",
     "NARU_CUFFT_LIBRARY",
     "cufft",
     "Fourier transforms on the cpu",
     {{"libcufft.so.12", "nvidia/cu13/lib"}, {"libcufft.so.11", "nvidia/cufft/lib"}, {"libcufft.so.10", "nvidia/cufft/lib"}}},
    {"cuSOLVER",
     "NARU_CUSOLVER_LIBRARY",
     "cusolver",
     "linear algebra on the cpu",
     {{"libcusolver.so.12", "nvidia/cu13/lib"},
      {"libcusolver.so.11", "nvidia/cusolver/lib"},
      {"libcusolver.so.11", "nvidia/cusolver/lib"}}},
    {"cuDNN",
     "NARU_CUDNN_LIBRARY",
     "cudnn",
     "own kernels for convolutions",
     {{"libcudnn.so.9", "nvidia/cudnn/lib"}, {"libcudnn.so.9", "nvidia/cudnn/lib"}, {"libcudnn.so.9", "nvidia/cudnn/lib"}},
     "-cu13",
     "NVIDIA's package of cuDNN 9"},
    {"NCCL",
     "NARU_NCCL_LIBRARY",
     "nccl",
     "process groups through the host's memory",
     {{"libnccl.so.2", "nvidia/nccl/lib"}, {"libnccl.so.2", "nvidia/nccl/lib"}, {"libnccl.so.2", "nvidia/nccl/lib"}},
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

// lib: in a Conda environment.
std::vector<std::string> toolkits() {
  std::vector<std::string> folders;
  for (const std::string& home : homes())
    for (const char* folder : {"/lib64", "/lib"}) folders.push_back(home + folder);
  return folders;
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
    // Wheels first: another package (PyTorch, CuPy) that this process imports later opens them, and a process has only one library of a
    // name.
    for (const std::string& folder : runtime::Library::package_folders())
      places.push_back(fmt::format("{}/{}/{}", folder, file.folder, file.name));
    places.push_back(file.name);
    for (const std::string& folder : toolkits()) places.push_back(folder + "/" + file.name);
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
  for (const Version& v : versions_for(driver_version)) loaded.push_back(row_of(product).of[v.column].name);
  return runtime::Library::open(row_of(product).variable, names, loaded);
}

}  // namespace naru::backends::cuda
