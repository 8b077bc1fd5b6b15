// PoCL reads its declarations of all of OpenCL C, a megabyte, twice for each program: half of the time that a kernel takes to compile. The kernels that
// naru renders need thirty of them. With NARU_FAKE_OPENCL_HEADERS=own, these texts get those alone, if the compiler is a PoCL that is known to be tricked
// so; kernels of users get what PoCL has.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

#include "opencl_calls.h"

namespace {

// In every text that naru renders; those of users' kernels may begin with it, too.
constexpr const char* kRendered = "typedef char i8; typedef short i16; typedef int i32; typedef long i64;";
// PoCL's file of declarations thinks that it has been read.
constexpr const char* kWithout = " -D_OPENCL_H_";
constexpr const char* kDeclarations = R"(
#define FOUR(t) typedef t t##4 __attribute__((ext_vector_type(4)));
FOUR(char) FOUR(short) FOUR(int) FOUR(long) FOUR(uchar) FOUR(ushort) FOUR(uint) FOUR(ulong) FOUR(float)
#define as_float(x) __builtin_astype((x), float)
#define as_int(x) __builtin_astype((x), int)
#define as_uint(x) __builtin_astype((x), uint)
#define as_long(x) __builtin_astype((x), long)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_double(x) __builtin_astype((x), double)
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define OVERLOADED __attribute__((overloadable))
#define PURE __attribute__((overloadable, const))
void __attribute__((overloadable, convergent)) barrier(uint);
size_t PURE get_group_id(uint);
size_t PURE get_local_id(uint);
#define OF(t) t PURE fma(t, t, t); t PURE sqrt(t); t PURE fabs(t); t PURE floor(t); t PURE ceil(t); t PURE trunc(t); t PURE rint(t);
OF(float)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
FOUR(double)
OF(double)
#endif
#define ATOMICS(place, t) t OVERLOADED atomic_min(volatile place t*, t); t OVERLOADED atomic_inc(volatile place t*);
ATOMICS(global, int) ATOMICS(global, uint) ATOMICS(local, int) ATOMICS(local, uint)
#line 1
)";

std::mutex mutex;

std::unordered_set<void*>& with_own() {
  static auto* const programs = new std::unordered_set<void*>;  // outlives the program's statics
  return *programs;
}

template <class F>
std::string text_of(F&& ask) {
  size_t size = 0;
  if (ask(size_t{0}, static_cast<void*>(nullptr), &size) != 0) return {};
  std::string text(size, '\0');
  return ask(size, static_cast<void*>(text.data()), static_cast<size_t*>(nullptr)) == 0 ? text : std::string();
}

bool is_known_pocl(void* context) {
  using Ask = int32_t (*)(void*, uint32_t, size_t, void*, size_t*);
  static const auto of_context = reinterpret_cast<Ask>(real_function("clGetContextInfo"));
  static const auto of_device = reinterpret_cast<Ask>(real_function("clGetDeviceInfo"));
  static const auto of_platform = reinterpret_cast<Ask>(real_function("clGetPlatformInfo"));
  constexpr uint32_t kDevices = 0x1081, kPlatform = 0x1031, kVersion = 0x0901;
  const std::string devices = text_of([&](size_t size, void* to, size_t* all) { return of_context(context, kDevices, size, to, all); });
  void *device = nullptr, *platform = nullptr;
  if (devices.size() < sizeof device) return false;
  std::memcpy(&device, devices.data(), sizeof device);
  if (of_device(device, kPlatform, sizeof platform, &platform, nullptr) != 0) return false;
  return text_of([&](size_t size, void* to, size_t* all) { return of_platform(platform, kVersion, size, to, all); }).find(" PoCL 3.1") !=
         std::string::npos;
}

}  // namespace

std::string options_of(void* program, const char* options) {
  const std::lock_guard lock(mutex);
  return std::string(options ? options : "") + (with_own().count(program) ? kWithout : "");
}

EXPORT void* clCreateProgramWithSource(void* context, uint32_t count, const char** texts, const size_t* lengths, int32_t* error) {
  static const auto real = reinterpret_cast<decltype(&clCreateProgramWithSource)>(real_function("clCreateProgramWithSource"));
  if (const int32_t status = failure_of("clCreateProgramWithSource")) {
    if (error) *error = status;
    return nullptr;
  }
  const char* asked = std::getenv("NARU_FAKE_OPENCL_HEADERS");
  if (!asked || std::strcmp(asked, "own") != 0) return real(context, count, texts, lengths, error);
  std::string all = kDeclarations;
  for (uint32_t i = 0; i < count; ++i) all += lengths && lengths[i] ? std::string(texts[i], lengths[i]) : texts[i];
  // (Products of matrices compute with vectors, and users with all that there is: neither is among them.)
  const auto names = [&](const char* word) { return all.find(word) != all.npos; };
  const bool own = names(kRendered) && !names("vload") && !names("#line 1 \"kernel\"") && is_known_pocl(context);
  const char* one = all.c_str();
  void* const program = own ? real(context, 1, &one, nullptr, error) : real(context, count, texts, lengths, error);
  const std::lock_guard lock(mutex);
  own ? (void)with_own().insert(program) : (void)with_own().erase(program);
  return program;
}
