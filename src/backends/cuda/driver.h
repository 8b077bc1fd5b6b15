// NVIDIA's driver, libcuda: what probing needs to know of it.
#pragma once

#include "runtime/gpu_driver.h"

namespace naru::backends::cuda {

extern const runtime::GpuDriver kDriver;

}  // namespace naru::backends::cuda
