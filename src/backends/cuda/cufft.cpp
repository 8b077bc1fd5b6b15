#include "backends/cuda/cufft.h"

#include <fmt/format.h>

namespace naru::backends::cuda {
namespace {

int version_of(const Cufft& f) {
  int version = 0;
  return f.cufftGetVersion && f.cufftGetVersion(&version) == CUFFT_SUCCESS ? version : 0;
}

}  // namespace

void Cufft::find() {
#define NARU_FIND(name, parameters) library.find(name, #name);
  NARU_CUFFT(NARU_FIND)
#undef NARU_FIND
}

std::string Cufft::name() const {
  const int v = version_of(*this);
  return fmt::format("cuFFT {}.{}.{}", v / 1000, v % 1000 / 100, v % 100);
}

// cuFFT 10 is CUDA 11's.
int Cufft::cuda() const { return version_of(*this) / 1000 + 1; }

std::string cufft_status_name(cufftResult status) {
  switch (status) {
#define NARU_STATUS(name) \
  case name:              \
    return #name;
    NARU_STATUS(CUFFT_SUCCESS)
    NARU_STATUS(CUFFT_INVALID_PLAN)
    NARU_STATUS(CUFFT_ALLOC_FAILED)
    NARU_STATUS(CUFFT_INVALID_TYPE)
    NARU_STATUS(CUFFT_INVALID_VALUE)
    NARU_STATUS(CUFFT_INTERNAL_ERROR)
    NARU_STATUS(CUFFT_EXEC_FAILED)
    NARU_STATUS(CUFFT_SETUP_FAILED)
    NARU_STATUS(CUFFT_INVALID_SIZE)
    NARU_STATUS(CUFFT_UNALIGNED_DATA)
    NARU_STATUS(CUFFT_INVALID_DEVICE)
    NARU_STATUS(CUFFT_NO_WORKSPACE)
    NARU_STATUS(CUFFT_NOT_IMPLEMENTED)
    NARU_STATUS(CUFFT_NOT_SUPPORTED)
#undef NARU_STATUS
    default:
      return fmt::format("status {}", status);
  }
}

}  // namespace naru::backends::cuda
