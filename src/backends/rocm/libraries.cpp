#include "backends/rocm/libraries.h"

namespace naru::backends::rocm {
namespace {

struct LibraryRow {
  const char *label, *variable, *without, *remedy;
  const char* files[2];  // in the system's folders, in ROCm's
};
// In the order of Product.
constexpr LibraryRow kRows[] = {
    {"RCCL",
     "NARU_RCCL_LIBRARY",
     "process groups through the host's memory",
     "install AMD's package rccl",
     {"librccl.so.1", "/opt/rocm/lib/librccl.so.1"}},
};
const LibraryRow& row_of(Product product) { return kRows[static_cast<size_t>(product)]; }

}  // namespace

const char* label_of(Product product) { return row_of(product).label; }
const char* without(Product product) { return row_of(product).without; }
std::string remedy_of(Product product, int driver_version) { return static_cast<void>(driver_version), row_of(product).remedy; }

runtime::Library open_library(Product product, int driver_version) {
  static_cast<void>(driver_version);  // a system has one ROCm in its folder
  const LibraryRow& row = row_of(product);
  return runtime::Library::open(row.variable, row.files);
}

}  // namespace naru::backends::rocm
