// A wrapper of the machine's own OpenCL (PoCL in the tests) with behaviour that PoCL lacks, controlled by the environment:
//   NARU_FAKE_OPENCL_PLATFORMS=2   lists every platform twice;
//   NARU_FAKE_OPENCL_BROKEN=HOW    has a platform more, before the others, that does not work: "crash" and "devices" when it is asked for its devices
//                                  (the process ends; an error), "empty" has none, "context" and "context-crash" fail when a context is made;
//   NARU_FAKE_OPENCL_LARGEST=N     limits buffers to N bytes;
//   NARU_FAKE_OPENCL_LAUNCH=C@N    launching the N-th kernel of a process, and all later ones, returns the error C;
//   NARU_FAKE_OPENCL_EVENTS=C@N    from then on, events have status C;
//   NARU_FAKE_OPENCL_LOST=C@N      from then on, waits and queries return C;
//   NARU_FAKE_OPENCL_BUILD=1       the compiler rejects everything, with a log;
//   NARU_FAKE_OPENCL_HEADERS=own   texts that naru renders are compiled in half the time (opencl_headers.cpp).
// In addition, fake_fail_call() makes any call fail (opencl_calls.cpp).
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "opencl_calls.h"

namespace {

std::atomic<int> kernels{0};

// The platform that does not work, and its device, which describes itself as another platform's.
char broken_platform, broken_device;
bool broken(const char* how = nullptr) {
  const char* text = std::getenv("NARU_FAKE_OPENCL_BROKEN");
  return text && *text && (!how || std::strcmp(text, how) == 0);
}
void* device_that_works();

// "C@N": returns C once N kernels have been started.
int error_of(const char* variable) {
  const char* text = std::getenv(variable);
  int code = 0, from = 0;
  return text && std::sscanf(text, "%d@%d", &code, &from) == 2 && kernels.load() >= from ? code : 0;
}

}  // namespace

#define REAL(name)                                                                            \
  static const auto of_the_machine = reinterpret_cast<decltype(&name)>(real_function(#name)); \
  if (const int32_t status = failure_of(#name)) return status

EXPORT int32_t clGetPlatformIDs(uint32_t count, void** platforms, uint32_t* all) {
  REAL(clGetPlatformIDs);
  uint32_t n = 0;
  if (const int code = of_the_machine(0, nullptr, &n)) return code;
  std::vector<void*> list(n);
  of_the_machine(n, list.data(), nullptr);
  const char* text = std::getenv("NARU_FAKE_OPENCL_PLATFORMS");
  if (text && std::strcmp(text, "2") == 0) list.insert(list.end(), list.begin(), list.begin() + n);
  if (broken()) list.insert(list.begin(), &broken_platform);
  if (platforms) std::copy_n(list.begin(), std::min<size_t>(count, list.size()), platforms);
  if (all) *all = static_cast<uint32_t>(list.size());
  return 0;
}

EXPORT int32_t clGetPlatformInfo(void* platform, uint32_t what, size_t size, void* value, size_t* wanted) {
  REAL(clGetPlatformInfo);
  if (platform != &broken_platform) return of_the_machine(platform, what, size, value, wanted);
  constexpr char kName[] = "Broken";
  if (wanted) *wanted = sizeof kName;
  if (value) std::memcpy(value, kName, std::min(size, sizeof kName));
  return 0;
}

EXPORT int32_t clGetDeviceIDs(void* platform, uint64_t type, uint32_t count, void** devices, uint32_t* all) {
  REAL(clGetDeviceIDs);
  if (platform != &broken_platform) return of_the_machine(platform, type, count, devices, all);
  if (broken("crash")) std::abort();
  if (broken("devices")) return -6;
  if (broken("empty")) return -1;
  if (devices && count > 0) devices[0] = &broken_device;
  if (all) *all = 1;
  return 0;
}

EXPORT void* clCreateContext(const intptr_t* properties, uint32_t count, void* const* devices,
                             void (*told)(const char*, const void*, size_t, void*), void* data, int32_t* error) {
  static const auto of_the_machine = reinterpret_cast<decltype(&clCreateContext)>(real_function("clCreateContext"));
  if (broken("context-crash") && devices[0] == &broken_device) std::abort();
  const int32_t status = broken("context") && devices[0] == &broken_device ? -33 : failure_of("clCreateContext");
  if (!status) return of_the_machine(properties, count, devices, told, data, error);
  if (error) *error = status;
  return nullptr;
}

EXPORT int32_t clGetDeviceInfo(void* device, uint32_t what, size_t size, void* value, size_t* wanted) {
  REAL(clGetDeviceInfo);
  const int32_t code = of_the_machine(device == &broken_device ? device_that_works() : device, what, size, value, wanted);
  const char* text = std::getenv("NARU_FAKE_OPENCL_LARGEST");
  constexpr uint32_t kLargest = 0x1010;
  if (what == kLargest && text && value && size == 8) {
    const uint64_t bytes = std::strtoull(text, nullptr, 10);
    std::memcpy(value, &bytes, 8);
  }
  return code;
}

EXPORT int32_t clEnqueueNDRangeKernel(void* queue, void* kernel, uint32_t dimensions, const size_t* offset, const size_t* items,
                                      const size_t* group, uint32_t count, void* const* list, void** event) {
  REAL(clEnqueueNDRangeKernel);
  ++kernels;
  if (const int code = error_of("NARU_FAKE_OPENCL_LAUNCH")) return code;
  return of_the_machine(queue, kernel, dimensions, offset, items, group, count, list, event);
}

EXPORT int32_t clGetEventInfo(void* event, uint32_t what, size_t size, void* value, size_t* wanted) {
  REAL(clGetEventInfo);
  if (const int code = error_of("NARU_FAKE_OPENCL_LOST")) return code;
  const int32_t done = of_the_machine(event, what, size, value, wanted);
  constexpr uint32_t kStatus = 0x11D3;
  const int32_t code = error_of("NARU_FAKE_OPENCL_EVENTS");
  int32_t status = 1;
  if (what == kStatus && size == 4) std::memcpy(&status, value, 4);
  if (code && status == 0) std::memcpy(value, &code, 4);
  return done;
}

EXPORT int32_t clWaitForEvents(uint32_t count, void* const* events) {
  REAL(clWaitForEvents);
  if (const int code = error_of("NARU_FAKE_OPENCL_LOST")) return code;
  const int32_t code = of_the_machine(count, events);
  constexpr int32_t kOneEndedWithAnError = -14;
  return error_of("NARU_FAKE_OPENCL_EVENTS") ? kOneEndedWithAnError : code;
}

EXPORT int32_t clBuildProgram(void* program, uint32_t count, void* const* devices, const char* options, void (*told)(void*, void*),
                              void* data) {
  REAL(clBuildProgram);
  constexpr int32_t kRefused = -11;
  return std::getenv("NARU_FAKE_OPENCL_BUILD") ? kRefused
                                               : of_the_machine(program, count, devices, options_of(program, options).c_str(), told, data);
}

EXPORT int32_t clGetProgramBuildInfo(void* program, void* device, uint32_t what, size_t size, void* value, size_t* wanted) {
  REAL(clGetProgramBuildInfo);
  constexpr char kLog[] = "error: not today";
  constexpr uint32_t kBuildLog = 0x1183;
  if (!std::getenv("NARU_FAKE_OPENCL_BUILD") || what != kBuildLog) return of_the_machine(program, device, what, size, value, wanted);
  if (wanted) *wanted = sizeof kLog;
  if (value) std::memcpy(value, kLog, std::min(size, sizeof kLog));
  return 0;
}

namespace {

void* device_that_works() {
  static const auto platforms = reinterpret_cast<decltype(&clGetPlatformIDs)>(real_function("clGetPlatformIDs"));
  static const auto devices = reinterpret_cast<decltype(&clGetDeviceIDs)>(real_function("clGetDeviceIDs"));
  void* list[16] = {};
  uint32_t count = 0;
  platforms(16, list, &count);
  constexpr uint64_t kAll = 0xFFFFFFFF;
  for (uint32_t i = 0; i < std::min(count, 16u); ++i)
    if (void* device = nullptr; devices(list[i], kAll, 1, &device, nullptr) == 0 && device) return device;
  return nullptr;
}

}  // namespace
