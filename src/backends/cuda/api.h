// The part of NVIDIA's driver API that naru uses, opened at run time, so building needs no CUDA. Names are the driver's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/os/library.h"

namespace naru::backends::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
inline CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
using CUcontext = struct ContextTag*;
using CUstream = struct StreamTag*;
using CUevent = struct EventTag*;
using CUmodule = struct ModuleTag*;
using CUfunction = struct FunctionTag*;
using CUgraph = struct GraphTag*;
using CUgraphExec = struct GraphExecTag*;

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_NOT_READY = 600,
};
enum : unsigned {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEMHOSTALLOC_PORTABLE = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
enum : int {
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

#define NARU_CUDA(F)                                                                                                                      \
  F(cuInit, (unsigned flags))                                                                                                             \
  F(cuDeviceGetCount, (int*))                                                                                                             \
  F(cuDeviceGet, (CUdevice*, int number))                                                                                                 \
  F(cuDeviceGetPCIBusId, (char*, int bytes, CUdevice))                                                                                    \
  F(cuDeviceGetByPCIBusId, (CUdevice*, const char* pci))                                                                                  \
  F(cuDeviceGetAttribute, (int*, int attribute, CUdevice))                                                                                \
  F(cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                                                                                     \
  F(cuCtxPushCurrent_v2, (CUcontext))                                                                                                     \
  F(cuCtxPopCurrent_v2, (CUcontext*))                                                                                                     \
  F(cuCtxGetCurrent, (CUcontext*))                                                                                                        \
  F(cuCtxSetCurrent, (CUcontext))                                                                                                         \
  F(cuCtxSynchronize, ())                                                                                                                 \
  F(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))                                                                              \
  F(cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer))                                                                    \
  F(cuMemGetInfo_v2, (size_t * available, size_t * total))                                                                                \
  F(cuMemAlloc_v2, (CUdeviceptr*, size_t bytes))                                                                                          \
  F(cuMemFree_v2, (CUdeviceptr))                                                                                                          \
  F(cuMemHostAlloc, (void**, size_t bytes, unsigned flags))                                                                               \
  F(cuMemFreeHost, (void*))                                                                                                               \
  F(cuMemcpyHtoDAsync_v2, (CUdeviceptr target, const void* source, size_t bytes, CUstream))                                               \
  F(cuMemcpyDtoHAsync_v2, (void* target, CUdeviceptr source, size_t bytes, CUstream))                                                     \
  F(cuMemcpyDtoDAsync_v2, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream))                                               \
  F(cuMemcpyPeerAsync,                                                                                                                    \
    (CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context, size_t bytes, CUstream))                 \
  F(cuStreamCreateWithPriority, (CUstream*, unsigned flags, int priority))                                                                \
  F(cuStreamDestroy_v2, (CUstream))                                                                                                       \
  F(cuStreamSynchronize, (CUstream))                                                                                                      \
  F(cuStreamWaitEvent, (CUstream, CUevent, unsigned flags))                                                                               \
  F(cuEventCreate, (CUevent*, unsigned flags))                                                                                            \
  F(cuEventDestroy_v2, (CUevent))                                                                                                         \
  F(cuEventRecord, (CUevent, CUstream))                                                                                                   \
  F(cuEventQuery, (CUevent))                                                                                                              \
  F(cuEventSynchronize, (CUevent))                                                                                                        \
  F(cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end))                                                                \
  F(cuModuleLoadData, (CUmodule*, const void* image))                                                                                     \
  F(cuModuleGetFunction, (CUfunction*, CUmodule, const char* name))                                                                       \
  F(cuModuleUnload, (CUmodule))                                                                                                           \
  F(cuFuncGetAttribute, (int*, int attribute, CUfunction))                                                                                \
  F(cuFuncSetAttribute, (CUfunction, int attribute, int value))                                                                           \
  F(cuLaunchKernel, (CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
                     unsigned shared_bytes, CUstream, void** parameters, void** extra))                                                   \
  F(cuGetErrorName, (CUresult, const char**))                                                                                             \
  F(cuGetErrorString, (CUresult, const char**))

// Functions that drivers before CUDA 11.4 lack: null there.
#define NARU_CUDA_GRAPHS(F)                                                         \
  F(cuStreamBeginCapture_v2, (CUstream, unsigned mode))                             \
  F(cuThreadExchangeStreamCaptureMode, (unsigned* mode))                            \
  F(cuStreamEndCapture, (CUstream, CUgraph*))                                       \
  F(cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long flags)) \
  F(cuGraphLaunch, (CUgraphExec, CUstream))                                         \
  F(cuGraphExecDestroy, (CUgraphExec))                                              \
  F(cuGraphDestroy, (CUgraph))

struct Api {
  runtime::Library library;
#define NARU_DECLARE(name, parameters) CUresult(*name) parameters = nullptr;
  NARU_CUDA(NARU_DECLARE)
  NARU_CUDA_GRAPHS(NARU_DECLARE)
#undef NARU_DECLARE

  // Opens the library; if that fails, library.trouble() gives the reason.
  static Api open();
  bool has_graphs() const noexcept {
    return cuStreamBeginCapture_v2 && cuStreamEndCapture && cuGraphInstantiateWithFlags && cuGraphLaunch && cuGraphExecDestroy &&
           cuGraphDestroy;
  }
  // "700 CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
  std::string error_text(CUresult code) const;
};

// True if a call was refused because a thread of this process is capturing a stream: another library's capture may forbid even queries.
constexpr bool is_of_capture(CUresult code) noexcept { return code >= 900 && code <= 908; }
// True for sticky errors: after one, the device can't be used in this process any more.
bool is_lasting(CUresult code) noexcept;

}  // namespace naru::backends::cuda
