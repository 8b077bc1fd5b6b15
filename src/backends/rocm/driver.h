// AMD's HIP run time, libamdhip64: the facts that probing needs.
#pragma once

#include "runtime/device/gpu_driver.h"

namespace naru::backends::rocm {

extern const runtime::GpuDriver kDriver;

}  // namespace naru::backends::rocm
