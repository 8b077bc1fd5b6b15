// NVIDIA's driver, libcuda: the facts that probing needs.
#pragma once

#include "runtime/device/gpu_driver.h"

namespace naru::backends::cuda {

extern const runtime::GpuDriver kDriver;

}  // namespace naru::backends::cuda
