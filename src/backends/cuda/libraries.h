// Finds CUDA's libraries: among the system's, in a toolkit folder, or in wheels of a Python environment.
#pragma once

#include <string>
#include <vector>

#include "runtime/os/library.h"

namespace naru::backends::cuda {

enum class Product { Nvrtc, CublasLt, Cufft, Cusolver, Cudnn, Nccl };
constexpr size_t kProducts = 6;

// Names and paths to try, best first: those of the driver's own CUDA version (as "12080"), then older, then newer ones. For each: the bare
// name (the loader's folders, LD_LIBRARY_PATH), then CUDA_HOME, CUDA_PATH and /usr/local/cuda, then the folders of wheels.
std::vector<std::string> places_of(Product product, int driver_version);
// Existing folders with CUDA's headers (cuda_fp16.h ...), best first: toolkits, then wheels.
std::vector<std::string> include_folders(int driver_version);
// "cuFFT".
const char* label_of(Product product);
// What happens without it: "Fourier transforms on the cpu".
const char* without(Product product);
// What to install for a driver of this version: "pip install nvidia-cublas-cu12, or the CUDA toolkit".
std::string remedy_of(Product product, int driver_version);
// Opens the file that the product's environment variable names (NARU_CUFFT_LIBRARY), else the first of places_of that opens.
runtime::Library open_library(Product product, int driver_version);

}  // namespace naru::backends::cuda
