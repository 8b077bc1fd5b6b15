// Where CUDA's libraries are: among the system's, in a toolkit's folder, in the wheels of a Python environment.
#pragma once

#include <string>
#include <vector>

#include "runtime/library.h"

namespace naru::backends::cuda {

enum class Product { Nvrtc, CublasLt, Cufft, Cusolver, Cudnn };
constexpr size_t kProducts = 5;

// The names and paths to try, best first: of the driver's own CUDA version (as "12080"), then older ones, then newer ones; each by its name alone
// (the loader's folders, LD_LIBRARY_PATH), in CUDA_HOME, CUDA_PATH and /usr/local/cuda, and in the folders of wheels.
std::vector<std::string> places_of(Product product, int driver_version);
// The folders with CUDA's headers (cuda_fp16.h ...) that there are, best first: of the toolkits, then of the wheels.
std::vector<std::string> include_folders(int driver_version);
// "cuFFT".
const char* label_of(Product product);
// What is done without it: "Fourier transforms on the cpu".
const char* without(Product product);
// What to install for a driver of this version: "pip install nvidia-cublas-cu12, or the CUDA toolkit".
std::string remedy_of(Product product, int driver_version);
// The file that the environment's variable of the product names (NARU_CUFFT_LIBRARY), else the first of those places.
runtime::Library open_library(Product product, int driver_version);

}  // namespace naru::backends::cuda
