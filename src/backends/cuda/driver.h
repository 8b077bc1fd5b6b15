// NVIDIA's driver, libcuda: what probing needs to know of it.
#pragma once

#include "runtime/gpu_driver.h"

namespace naru::backends::cuda {

extern const runtime::GpuDriver kDriver;

// The compiler of kernels. The environment's NARU_NVRTC_LIBRARY names another file.
inline constexpr const char* kCompilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

}  // namespace naru::backends::cuda
