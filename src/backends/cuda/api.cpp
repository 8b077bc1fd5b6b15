#include "backends/cuda/api.h"

#include "backends/cuda/driver.h"

namespace naru::backends::cuda {
namespace {

constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;

bool is_lasting(gpu::Result code) noexcept {
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

}  // namespace

gpu::Driver open_driver() {
  gpu::Driver d;
  d.words = kDriver.words, d.language = "CUDA";
  d.limits = {.groups = (int64_t{1} << 31) - 1, .items = 0, .other_groups = 65535, .deepest = 64};
  d.optin_attribute = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
  d.library = runtime::Library::open(kDriver.library_variable, kDriver.libraries);
#define NARU_FIND(field, symbol) d.find(d.field, #symbol);
  NARU_CUDA(NARU_FIND)
#undef NARU_FIND
#define NARU_FIND(field, symbol) d.find_optional(d.field, #symbol);
  NARU_CUDA_GRAPHS(NARU_FIND)
#undef NARU_FIND
  d.is_lasting = is_lasting;
  return d;
}

}  // namespace naru::backends::cuda
