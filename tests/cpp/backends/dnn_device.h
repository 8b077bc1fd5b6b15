// A device for the real cuDNN on a machine without a GPU: the library makes plans from a device's properties alone.
#pragma once

#include <cstring>

#include "backends/cuda/dnn_graph.h"

namespace naru::testing {

constexpr int kWithoutDevice = 90800;  // the first version that supports this

constexpr const char* kH100 =
    R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,
"multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,
"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,
"totalGlobalMem":85000000000,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"deviceName":"NVIDIA H100 80GB HBM3"})";

inline backends::cuda::DnnDescriptor h100(const backends::cuda::Cudnn& functions, const backends::cuda::DnnCheck& check) {
  using namespace backends::cuda;
  DnnDescriptor device(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, check);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(std::strlen(kH100)), kH100, check);
  device.finish(check);
  return device;
}

}  // namespace naru::testing
