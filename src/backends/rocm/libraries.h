// Finds AMD's libraries besides the run time and the compiler: among the system's, or in ROCm's folder.
#pragma once

#include <string>

#include "backends/gpu/nccl.h"
#include "runtime/os/library.h"

namespace naru::backends::rocm {

enum class Product { HipblasLt, Miopen, Rccl };

const char* label_of(Product product);
// What happens without it.
const char* without(Product product);
// What to install. driver_version: 60140000 is HIP 6.1.
std::string remedy_of(Product product, int driver_version);
// Opens the file that the product's environment variable names, else the first that is found and that is of the driver's ROCm.
runtime::Library open_library(Product product, int driver_version);

struct Rccl : gpu::NcclFunctions {
  static constexpr Product kProduct = Product::Rccl;
};

}  // namespace naru::backends::rocm
