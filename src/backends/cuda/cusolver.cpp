#include "backends/cuda/cusolver.h"

#include <fmt/format.h>

namespace naru::backends::cuda {
namespace {

int version_of(const Cusolver& f) {
  int version = 0;
  return f.cusolverGetVersion && f.cusolverGetVersion(&version) == CUSOLVER_STATUS_SUCCESS ? version : 0;
}

}  // namespace

void Cusolver::find() {
#define NARU_FIND(name, parameters) library.find(name, #name);
  NARU_CUSOLVER(NARU_FIND)
#undef NARU_FIND
}

std::string Cusolver::name() const {
  const int v = version_of(*this);
  return fmt::format("cuSOLVER {}.{}.{}", v / 1000, v % 1000 / 100, v % 100);
}

// cuSOLVER 11 is CUDA 11's and 12's.
int Cusolver::cuda() const { return version_of(*this) >= 12000 ? version_of(*this) / 1000 + 1 : 11; }

std::string cusolver_status_name(cusolverStatus_t status) {
  switch (status) {
#define NARU_STATUS(name) \
  case name:              \
    return #name;
    NARU_STATUS(CUSOLVER_STATUS_SUCCESS)
    NARU_STATUS(CUSOLVER_STATUS_NOT_INITIALIZED)
    NARU_STATUS(CUSOLVER_STATUS_ALLOC_FAILED)
    NARU_STATUS(CUSOLVER_STATUS_INVALID_VALUE)
    NARU_STATUS(CUSOLVER_STATUS_ARCH_MISMATCH)
    NARU_STATUS(CUSOLVER_STATUS_MAPPING_ERROR)
    NARU_STATUS(CUSOLVER_STATUS_EXECUTION_FAILED)
    NARU_STATUS(CUSOLVER_STATUS_INTERNAL_ERROR)
    NARU_STATUS(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED)
    NARU_STATUS(CUSOLVER_STATUS_NOT_SUPPORTED)
    NARU_STATUS(CUSOLVER_STATUS_ZERO_PIVOT)
    NARU_STATUS(CUSOLVER_STATUS_INVALID_LICENSE)
    NARU_STATUS(CUSOLVER_STATUS_INVALID_WORKSPACE)
#undef NARU_STATUS
    default:
      return fmt::format("status {}", status);
  }
}

}  // namespace naru::backends::cuda
