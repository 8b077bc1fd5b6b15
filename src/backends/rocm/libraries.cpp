#include "backends/rocm/libraries.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace naru::backends::rocm {
namespace {

struct LibraryRow {
  const char *label, *variable, *without, *remedy;
  const char* of[3];  // the file of ROCm 5, 6 and 7; null: none that naru can use
};
// In the order of Product.
constexpr LibraryRow kRows[] = {
    // ROCm 5's has the name of 6's, and other numbers of data types.
    {"hipBLASLt",
     "NARU_HIPBLASLT_LIBRARY",
     "own kernels for products",
     "install AMD's package hipblaslt, of ROCm 6 or newer",
     {nullptr, "libhipblaslt.so.0", "libhipblaslt.so.1"}},
    {"MIOpen",
     "NARU_MIOPEN_LIBRARY",
     "own kernels for convolutions",
     "install AMD's package miopen-hip",
     {"libMIOpen.so.1", "libMIOpen.so.1", "libMIOpen.so.1"}},
    {"RCCL",
     "NARU_RCCL_LIBRARY",
     "process groups through the host's memory",
     "install AMD's package rccl",
     {"librccl.so.1", "librccl.so.1", "librccl.so.1"}},
};
const LibraryRow& row_of(Product product) { return kRows[static_cast<size_t>(product)]; }

}  // namespace

const char* label_of(Product product) { return row_of(product).label; }
const char* without(Product product) { return row_of(product).without; }
std::string remedy_of(Product product, int driver_version) { return static_cast<void>(driver_version), row_of(product).remedy; }

runtime::Library open_library(Product product, int driver_version) {
  const LibraryRow& row = row_of(product);
  const int major = std::clamp(driver_version / 10000000, 5, 7);
  std::vector<const char*> names;
  std::string in_folder;
  if (const char* const own = row.of[major - 5]) {
    in_folder = std::string("/opt/rocm/lib/") + own;
    names = {own, in_folder.c_str()};
    // A distribution may build another version for its ROCm. It is found by its name alone; AMD's folder would load a second run time with it.
    for (const char* other : row.of)
      if (other && std::strcmp(other, own) != 0) names.push_back(other);
  }
  return runtime::Library::open(row.variable, names);
}

}  // namespace naru::backends::rocm
