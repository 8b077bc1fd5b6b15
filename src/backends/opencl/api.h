// The part of OpenCL 1.2 that naru uses, opened at run time, so building needs no OpenCL. Names are OpenCL's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/os/library.h"

namespace naru::backends::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_platform_id = struct PlatformTag*;
using cl_device_id = struct DeviceTag*;
using cl_context = struct ContextTag*;
using cl_command_queue = struct QueueTag*;
using cl_mem = struct MemTag*;
using cl_program = struct ProgramTag*;
using cl_kernel = struct KernelTag*;
using cl_event = struct EventTag*;

enum : cl_uint {
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
  CL_DEVICE_UUID_KHR = 0x106A,
  CL_DEVICE_PCI_BUS_INFO_KHR = 0x410F,
  CL_DEVICE_SVM_CAPABILITIES = 0x1053,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_PROFILING_COMMAND_END = 0x1283,
};
constexpr cl_ulong CL_DEVICE_TYPE_CPU = 2, CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;
constexpr cl_ulong CL_FP_DENORM = 1, CL_FP_FMA = 32, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128;
constexpr cl_ulong CL_QUEUE_PROFILING_ENABLE = 2;
constexpr cl_ulong CL_MEM_READ_WRITE = 1, CL_MEM_USE_HOST_PTR = 8, CL_MEM_ALLOC_HOST_PTR = 16;
constexpr cl_ulong CL_DEVICE_SVM_FINE_GRAIN_BUFFER = 2, CL_MEM_SVM_FINE_GRAIN_BUFFER = 1 << 10;
constexpr cl_ulong CL_MAP_READ = 1, CL_MAP_WRITE = 2;
constexpr cl_int CL_SUCCESS = 0, CL_COMPLETE = 0, CL_BUILD_PROGRAM_FAILURE = -11, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14;

// F(result, name, parameters).
#define NARU_OPENCL(F)                                                                                                                   \
  F(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id*, cl_uint*))                                                                      \
  F(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void*, size_t*))                                                        \
  F(cl_int, clGetDeviceIDs, (cl_platform_id, cl_ulong, cl_uint, cl_device_id*, cl_uint*))                                                \
  F(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void*, size_t*))                                                            \
  F(cl_context, clCreateContext,                                                                                                         \
    (const intptr_t*, cl_uint, const cl_device_id*, void (*)(const char*, const void*, size_t, void*), void*, cl_int*))                  \
  F(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_ulong, cl_int*))                                               \
  F(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                                                   \
  F(cl_mem, clCreateBuffer, (cl_context, cl_ulong, size_t, void*, cl_int*))                                                              \
  F(cl_int, clReleaseMemObject, (cl_mem))                                                                                                \
  F(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char**, const size_t*, cl_int*))                                  \
  F(cl_program, clCreateProgramWithBinary,                                                                                               \
    (cl_context, cl_uint, const cl_device_id*, const size_t*, const unsigned char**, cl_int*, cl_int*))                                  \
  F(cl_int, clBuildProgram, (cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*))                 \
  F(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void*, size_t*))                                                             \
  F(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void*, size_t*))                                          \
  F(cl_int, clReleaseProgram, (cl_program))                                                                                              \
  F(cl_kernel, clCreateKernel, (cl_program, const char*, cl_int*))                                                                       \
  F(cl_int, clReleaseKernel, (cl_kernel))                                                                                                \
  F(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void*, size_t*))                                        \
  F(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void*))                                                                   \
  F(cl_int, clEnqueueNDRangeKernel,                                                                                                      \
    (cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const cl_event*, cl_event*))            \
  F(cl_int, clEnqueueReadBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*))        \
  F(cl_int, clEnqueueWriteBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void*, cl_uint, const cl_event*, cl_event*)) \
  F(cl_int, clEnqueueCopyBuffer, (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*))        \
  F(cl_int, clEnqueueFillBuffer, (cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*))   \
  F(void*, clEnqueueMapBuffer,                                                                                                           \
    (cl_command_queue, cl_mem, cl_uint, cl_ulong, size_t, size_t, cl_uint, const cl_event*, cl_event*, cl_int*))                         \
  F(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event*))                             \
  F(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))                                        \
  F(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event*, cl_event*))                                       \
  F(cl_int, clFlush, (cl_command_queue))                                                                                                 \
  F(cl_int, clFinish, (cl_command_queue))                                                                                                \
  F(cl_int, clWaitForEvents, (cl_uint, const cl_event*))                                                                                 \
  F(cl_int, clReleaseEvent, (cl_event))                                                                                                  \
  F(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void*, size_t*))                                                                 \
  F(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void*, size_t*))

// OpenCL 2.0 functions: null if the loader lacks them. Use them only for devices whose DeviceInfo::shared is true.
#define NARU_OPENCL_2(F)                                                 \
  F(void*, clSVMAlloc, (cl_context, cl_ulong, size_t, cl_uint))          \
  F(void, clSVMFree, (cl_context, void*))                                \
  F(cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void*)) \
  F(cl_int, clEnqueueSVMMemcpy, (cl_command_queue, cl_uint, void*, const void*, size_t, cl_uint, const cl_event*, cl_event*))

struct Api {
#define NARU_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  NARU_OPENCL(NARU_MEMBER)
  NARU_OPENCL_2(NARU_MEMBER)
#undef NARU_MEMBER
  runtime::Library library;
  bool has_shared_memory() const noexcept { return clSVMAlloc && clSVMFree && clSetKernelArgSVMPointer && clEnqueueSVMMemcpy; }
  // Opens libOpenCL (or the file that NARU_OPENCL_LIBRARY names); library.trouble() tells why it failed.
  static Api open();
};
// The process-wide Api, opened at the first call.
const Api& api();

// Deleter that releases a driver object.
template <auto kRelease>
struct Releases {
  template <class T>
  void operator()(T* object) const noexcept {
    (api().*kRelease)(object);
  }
};
using OwnedQueue = std::unique_ptr<QueueTag, Releases<&Api::clReleaseCommandQueue>>;
using OwnedMem = std::unique_ptr<MemTag, Releases<&Api::clReleaseMemObject>>;
using OwnedProgram = std::unique_ptr<ProgramTag, Releases<&Api::clReleaseProgram>>;
using OwnedKernel = std::unique_ptr<KernelTag, Releases<&Api::clReleaseKernel>>;

// A driver event, released in the destructor.
class Event {
 public:
  Event() = default;
  Event(Event&& o) noexcept : event_(std::exchange(o.event_, nullptr)) {}
  Event& operator=(Event o) noexcept {
    std::swap(event_, o.event_);
    return *this;
  }
  ~Event() {
    if (event_) api().clReleaseEvent(event_);
  }
  // Releases the current event and returns the address where the driver stores a new one.
  cl_event* put() noexcept {
    *this = {};
    return &event_;
  }
  const cl_event& get() const noexcept { return event_; }
  explicit operator bool() const noexcept { return event_ != nullptr; }

 private:
  cl_event event_ = nullptr;
};

// "CL_OUT_OF_RESOURCES (-5)".
std::string error_text(cl_int code);
// Throws for anything but CL_SUCCESS: OutOfMemoryError, DeviceUnavailableError, else RuntimeError.
void check(cl_int code, const char* function);
// Throws the exception for an error code: OutOfMemoryError, DeviceUnavailableError or RuntimeError.
[[noreturn]] void raise_error(cl_int code, const std::string& text);

}  // namespace naru::backends::opencl
