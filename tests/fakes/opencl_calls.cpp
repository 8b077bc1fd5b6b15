// The OpenCL calls that opencl.cpp passes through unchanged, wrapped so that fake_fail_call() can make each of them fail.
#include "opencl_calls.h"

#include <dlfcn.h>

#include <atomic>

namespace {

std::atomic<int64_t> left{0};  // calls until the one that fails; 0: none will
std::atomic<int32_t> code{0};
std::atomic<const char*> failed{nullptr};

}  // namespace

int32_t failure_of(const char* name) {
  if (left.load(std::memory_order_relaxed) <= 0 || left.fetch_sub(1, std::memory_order_relaxed) != 1) return 0;
  failed = name;
  return code;
}

void* real_function(const char* name) {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  return dlsym(library, name);
}

// For tests: the n-th call from now on returns the code and does nothing; n = 0: none.
EXPORT void fake_fail_call(int64_t n, int32_t with) {
  failed = nullptr;
  code = with;
  left = n;
}
// The name of the function that has failed since then, or null.
EXPORT const char* fake_failed_call() { return failed; }

// A function that returns a status.
#define STATUS(name, parameters, arguments)                                           \
  EXPORT int32_t name parameters {                                                    \
    static const auto real = reinterpret_cast<decltype(&name)>(real_function(#name)); \
    const int32_t status = failure_of(#name);                                         \
    return status ? status : real arguments;                                          \
  }
// A function that returns an object, and a status through its last argument.
#define OBJECT(name, parameters, arguments)                                           \
  EXPORT void* name parameters {                                                      \
    static const auto real = reinterpret_cast<decltype(&name)>(real_function(#name)); \
    const int32_t status = failure_of(#name);                                         \
    if (!status) return real arguments;                                               \
    if (error) *error = status;                                                       \
    return nullptr;                                                                   \
  }
using u32 = uint32_t;
using u64 = uint64_t;
using List = void* const*;

STATUS(clReleaseCommandQueue, (void* a), (a))
STATUS(clReleaseMemObject, (void* a), (a))
STATUS(clReleaseProgram, (void* a), (a))
STATUS(clReleaseKernel, (void* a), (a))
STATUS(clReleaseEvent, (void* a), (a))
STATUS(clGetProgramInfo, (void* a, u32 b, size_t c, void* d, size_t* e), (a, b, c, d, e))
STATUS(clGetKernelWorkGroupInfo, (void* a, void* b, u32 c, size_t d, void* e, size_t* f), (a, b, c, d, e, f))
STATUS(clSetKernelArg, (void* a, u32 b, size_t c, const void* d), (a, b, c, d))
STATUS(clSetKernelArgSVMPointer, (void* a, u32 b, const void* c), (a, b, c))
STATUS(clEnqueueReadBuffer, (void* a, void* b, u32 c, size_t d, size_t e, void* f, u32 g, List h, void** i), (a, b, c, d, e, f, g, h, i))
STATUS(clEnqueueWriteBuffer, (void* a, void* b, u32 c, size_t d, size_t e, const void* f, u32 g, List h, void** i),
       (a, b, c, d, e, f, g, h, i))
STATUS(clEnqueueCopyBuffer, (void* a, void* b, void* c, size_t d, size_t e, size_t f, u32 g, List h, void** i), (a, b, c, d, e, f, g, h, i))
STATUS(clEnqueueFillBuffer, (void* a, void* b, const void* c, size_t d, size_t e, size_t f, u32 g, List h, void** i),
       (a, b, c, d, e, f, g, h, i))
STATUS(clEnqueueUnmapMemObject, (void* a, void* b, void* c, u32 d, List e, void** f), (a, b, c, d, e, f))
STATUS(clEnqueueSVMMemcpy, (void* a, u32 b, void* c, const void* d, size_t e, u32 f, List g, void** h), (a, b, c, d, e, f, g, h))
STATUS(clEnqueueMarkerWithWaitList, (void* a, u32 b, List c, void** d), (a, b, c, d))
STATUS(clEnqueueBarrierWithWaitList, (void* a, u32 b, List c, void** d), (a, b, c, d))
STATUS(clFlush, (void* a), (a))
STATUS(clFinish, (void* a), (a))
STATUS(clGetEventProfilingInfo, (void* a, u32 b, size_t c, void* d, size_t* e), (a, b, c, d, e))

OBJECT(clCreateCommandQueue, (void* a, void* b, u64 c, int32_t* error), (a, b, c, error))
OBJECT(clCreateBuffer, (void* a, u64 b, size_t c, void* d, int32_t* error), (a, b, c, d, error))
OBJECT(clCreateProgramWithBinary, (void* a, u32 b, List c, const size_t* d, const unsigned char** e, int32_t* f, int32_t* error),
       (a, b, c, d, e, f, error))
OBJECT(clCreateKernel, (void* a, const char* b, int32_t* error), (a, b, error))
OBJECT(clEnqueueMapBuffer, (void* a, void* b, u32 c, u64 d, size_t e, size_t f, u32 g, List h, void** i, int32_t* error),
       (a, b, c, d, e, f, g, h, i, error))

EXPORT void* clSVMAlloc(void* a, u64 b, size_t c, u32 d) {
  static const auto real = reinterpret_cast<decltype(&clSVMAlloc)>(real_function("clSVMAlloc"));
  return failure_of("clSVMAlloc") ? nullptr : real(a, b, c, d);
}
