#include "backends/rocm/api.h"

#include "backends/rocm/driver.h"

namespace naru::backends::rocm {
namespace {

bool is_lasting(gpu::Result code) noexcept {
  switch (code) {
    case 4:     // hipErrorDeinitialized: the process is exiting
    case 53:    // hipErrorPriorLaunchFailure
    case 214:   // hipErrorECCNotCorrectable
    case 700:   // hipErrorIllegalAddress
    case 702:   // hipErrorLaunchTimeOut
    case 709:   // hipErrorContextIsDestroyed
    case 710:   // hipErrorAssert
    case 719:   // hipErrorLaunchFailure
    case 999:   // hipErrorUnknown
    case 1052:  // hipErrorRuntimeMemory
    case 1053:  // hipErrorRuntimeOther
      return true;
    default:
      return false;
  }
}

}  // namespace

gpu::Driver open_driver() {
  gpu::Driver d;
  d.words = kDriver.words, d.language = "HIP";
  d.default_stream = 0;
  // A grid has fewer than 2^32 items in a dimension.
  d.limits = {.groups = (int64_t{1} << 31) - 1, .items = (int64_t{1} << 32) - 1, .other_groups = 65535, .deepest = 1024};
  d.library = runtime::Library::open(kDriver.library_variable, kDriver.libraries);
#define NARU_FIND(field, symbol) d.find(d.field, #symbol);
  NARU_HIP(NARU_FIND)
#undef NARU_FIND
#define NARU_FIND(field, symbol) d.find_optional(d.field, #symbol);
  NARU_HIP_GRAPHS(NARU_FIND)
#undef NARU_FIND
  d.library.find(d.error_word, "hipGetErrorName");
  d.library.find(d.error_sentence, "hipGetErrorString");
  d.is_lasting = is_lasting;
  return d;
}

}  // namespace naru::backends::rocm
