// NVIDIA's driver, libcuda: which of its functions fill the table of gpu/driver.h, and what its libraries call its handles.
#pragma once

#include "backends/gpu/driver.h"

namespace naru::backends::cuda {

using CUstream = gpu::StreamHandle;

#define NARU_CUDA(F)                            \
  F(init, cuInit)                               \
  F(device_count, cuDeviceGetCount)             \
  F(device_get, cuDeviceGet)                    \
  F(device_pci, cuDeviceGetPCIBusId)            \
  F(device_by_pci, cuDeviceGetByPCIBusId)       \
  F(device_attribute, cuDeviceGetAttribute)     \
  F(context_retain, cuDevicePrimaryCtxRetain)   \
  F(context_push, cuCtxPushCurrent_v2)          \
  F(context_pop, cuCtxPopCurrent_v2)            \
  F(context_get, cuCtxGetCurrent)               \
  F(context_set, cuCtxSetCurrent)               \
  F(synchronize, cuCtxSynchronize)              \
  F(context_enable_peer, cuCtxEnablePeerAccess) \
  F(can_access_peer, cuDeviceCanAccessPeer)     \
  F(memory_info, cuMemGetInfo_v2)               \
  F(memory_take, cuMemAlloc_v2)                 \
  F(memory_free, cuMemFree_v2)                  \
  F(host_take, cuMemHostAlloc)                  \
  F(host_free, cuMemFreeHost)                   \
  F(copy_up, cuMemcpyHtoDAsync_v2)              \
  F(copy_down, cuMemcpyDtoHAsync_v2)            \
  F(copy_within, cuMemcpyDtoDAsync_v2)          \
  F(copy_between_contexts, cuMemcpyPeerAsync)   \
  F(stream_create, cuStreamCreateWithPriority)  \
  F(stream_destroy, cuStreamDestroy_v2)         \
  F(stream_synchronize, cuStreamSynchronize)    \
  F(stream_wait, cuStreamWaitEvent)             \
  F(event_create, cuEventCreate)                \
  F(event_destroy, cuEventDestroy_v2)           \
  F(event_record, cuEventRecord)                \
  F(event_query, cuEventQuery)                  \
  F(event_synchronize, cuEventSynchronize)      \
  F(event_elapsed, cuEventElapsedTime)          \
  F(module_load, cuModuleLoadData)              \
  F(module_function, cuModuleGetFunction)       \
  F(module_unload, cuModuleUnload)              \
  F(function_attribute, cuFuncGetAttribute)     \
  F(function_set_attribute, cuFuncSetAttribute) \
  F(launch, cuLaunchKernel)                     \
  F(error_name, cuGetErrorName)                 \
  F(error_string, cuGetErrorString)

// Drivers before CUDA 11.4 lack them.
#define NARU_CUDA_GRAPHS(F)                                   \
  F(capture_begin, cuStreamBeginCapture_v2)                   \
  F(capture_mode_exchange, cuThreadExchangeStreamCaptureMode) \
  F(capture_end, cuStreamEndCapture)                          \
  F(graph_instantiate, cuGraphInstantiateWithFlags)           \
  F(graph_launch, cuGraphLaunch)                              \
  F(graph_exec_destroy, cuGraphExecDestroy)                   \
  F(graph_destroy, cuGraphDestroy)

// Opens the library; if that fails, library.trouble() gives the reason.
gpu::Driver open_driver();

}  // namespace naru::backends::cuda
