#include "backends/cuda/api.h"

#include <fmt/format.h>

#include "backends/cuda/driver.h"

namespace naru::backends::cuda {

Api Api::open() {
  Api a;
  a.library = runtime::Library::open(kDriver.library_variable, kDriver.libraries);
#define NARU_FIND(name, parameters) a.library.find(a.name, #name);
  NARU_CUDA(NARU_FIND)
#undef NARU_FIND
#define NARU_FIND(name, parameters) a.library.find_optional(a.name, #name);
  NARU_CUDA_GRAPHS(NARU_FIND)
#undef NARU_FIND
  return a;
}

std::string Api::error_text(CUresult code) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName && cuGetErrorName(code, &name) == CUDA_SUCCESS && name) {
    const bool more = cuGetErrorString && cuGetErrorString(code, &text) == CUDA_SUCCESS && text;
    return fmt::format("{} {}{}", code, name, more ? fmt::format(" ({})", text) : "");
  }
  return std::to_string(code);
}

bool is_lasting(CUresult code) noexcept {
  switch (code) {
    case 4:    // CUDA_ERROR_DEINITIALIZED: the process is exiting
    case 46:   // CUDA_ERROR_DEVICE_UNAVAILABLE
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 709:  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 810:  // CUDA_ERROR_MPS_CLIENT_TERMINATED
    case 999:  // CUDA_ERROR_UNKNOWN: also of a GPU that has fallen off the bus
      return true;
    default:
      return false;
  }
}

}  // namespace naru::backends::cuda
