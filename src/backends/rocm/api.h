// AMD's HIP run time, libamdhip64: which of its functions fill the table of gpu/driver.h. It has a current device on each thread in place of
// contexts, and its kernels may use all shared memory without asking.
#pragma once

#include "backends/gpu/driver.h"

namespace naru::backends::rocm {

#define NARU_HIP(F)                             \
  F(init, hipInit)                              \
  F(device_count, hipGetDeviceCount)            \
  F(device_get, hipDeviceGet)                   \
  F(device_pci, hipDeviceGetPCIBusId)           \
  F(device_by_pci, hipDeviceGetByPCIBusId)      \
  F(device_attribute, hipDeviceGetAttribute)    \
  F(current_device, hipGetDevice)               \
  F(set_device, hipSetDevice)                   \
  F(synchronize, hipDeviceSynchronize)          \
  F(enable_peer, hipDeviceEnablePeerAccess)     \
  F(can_access_peer, hipDeviceCanAccessPeer)    \
  F(memory_info, hipMemGetInfo)                 \
  F(memory_take, hipMalloc)                     \
  F(memory_free, hipFree)                       \
  F(host_take, hipHostMalloc)                   \
  F(host_free, hipHostFree)                     \
  F(copy_up, hipMemcpyHtoDAsync)                \
  F(copy_down, hipMemcpyDtoHAsync)              \
  F(copy_within, hipMemcpyDtoDAsync)            \
  F(copy_between_devices, hipMemcpyPeerAsync)   \
  F(stream_create, hipStreamCreateWithPriority) \
  F(stream_destroy, hipStreamDestroy)           \
  F(stream_synchronize, hipStreamSynchronize)   \
  F(stream_wait, hipStreamWaitEvent)            \
  F(event_create, hipEventCreateWithFlags)      \
  F(event_destroy, hipEventDestroy)             \
  F(event_record, hipEventRecord)               \
  F(event_query, hipEventQuery)                 \
  F(event_synchronize, hipEventSynchronize)     \
  F(event_elapsed, hipEventElapsedTime)         \
  F(module_load, hipModuleLoadData)             \
  F(module_function, hipModuleGetFunction)      \
  F(module_unload, hipModuleUnload)             \
  F(function_attribute, hipFuncGetAttribute)    \
  F(launch, hipModuleLaunchKernel)

// A table without them has no graphs.
#define NARU_HIP_GRAPHS(F)                                     \
  F(capture_begin, hipStreamBeginCapture)                      \
  F(capture_mode_exchange, hipThreadExchangeStreamCaptureMode) \
  F(capture_end, hipStreamEndCapture)                          \
  F(graph_instantiate, hipGraphInstantiateWithFlags)           \
  F(graph_launch, hipGraphLaunch)                              \
  F(graph_exec_destroy, hipGraphExecDestroy)                   \
  F(graph_destroy, hipGraphDestroy)

// Opens the library; if that fails, library.trouble() gives the reason.
gpu::Driver open_driver();

}  // namespace naru::backends::rocm
