/* NVRTC (with FAKE_HIP: hipRTC) for tests, on a machine without a GPU: the machine's own C++ compiler makes a library of a kernel's text, in which a function runs one thread
   of it; the "machine code" names that library for the driver beside it (cuda.cpp). Texts are kept, *.cu or *.hip. A text for HIP and one for CUDA that mean the same have
   one library. */
#include <cstring>
#include <memory>
#include <regex>

#include "host_compiler.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
#ifdef FAKE_HIP
#define NAME(function) hiprtc##function
#else
#define NAME(function) nvrtc##function
#endif

namespace {

enum { kOutOfMemory = 1, kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6 };
#ifdef FAKE_HIP
constexpr const char* kExtension = ".hip";
#else
constexpr const char* kExtension = ".cu";
constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100, 120};
#endif

struct Program {
  std::string text, log, image;
};

// Declarations that NVRTC provides without an #include.
constexpr const char* kBefore = R"(
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define __constant__ static
#define __syncthreads() fake_names.barrier()
struct FakeThree { unsigned x, y, z; };
extern "C" { struct { FakeThree thread, block, threads, blocks; void (*barrier)(); void* (*translate)(void*); } fake_names; }
#define threadIdx fake_names.thread
#define blockIdx fake_names.block
#define blockDim fake_names.threads
#define gridDim fake_names.blocks
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline int atomicAdd(int* p, int x) { const int old = *p; *p += x; return old; }
static inline unsigned atomicAdd(unsigned* p, unsigned x) { const unsigned old = *p; *p += x; return old; }
static inline unsigned atomicMin(unsigned* p, unsigned x) { const unsigned old = *p; if (x < old) *p = x; return old; }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
#define fmaxf __builtin_fmaxf
#define fminf __builtin_fminf
#define roundf __builtin_roundf
#define copysignf __builtin_copysignf
#define ldexpf __builtin_ldexpf
#define cbrtf __builtin_cbrtf
#define tgammaf __builtin_tgammaf
#define fmodf __builtin_fmodf
#define round __builtin_round
#define copysign __builtin_copysign
#define ldexp __builtin_ldexp
#define cbrt __builtin_cbrt
#define tgamma __builtin_tgamma
#define fmax __builtin_fmax
#define fmin __builtin_fmin
#define fmod __builtin_fmod
static inline int abs(int x) { return x < 0 ? -x : x; }
#define fmaf __builtin_fmaf
#define sqrtf __builtin_sqrtf
#define fabsf __builtin_fabsf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define truncf __builtin_truncf
#define rintf __builtin_rintf
#define fma __builtin_fma
#define sqrt __builtin_sqrt
#define fabs __builtin_fabs
#define floor __builtin_floor
#define ceil __builtin_ceil
#define trunc __builtin_trunc
#define rint __builtin_rint
#line 1 "kernel.cu"
)";
constexpr const char* kAfter = R"(
template <int... I> struct FakeInts {};
#ifdef __clang__
template <class, int... I> using FakeMade = FakeInts<I...>;
template <int N> using FakeCount = __make_integer_seq<FakeMade, int, N>;
#else
template <int N> using FakeCount = FakeInts<__integer_pack(N)...>;
#endif
template <class T> struct FakeArgument { static void translate(void*) {} };
template <class T> struct FakeArgument<T*> { static void translate(void* p) { *(void**)p = fake_names.translate(*(void**)p); } };
template <class... P, int... I> static inline void fake_call(void (*f)(P...), void** p, FakeInts<I...>) { f(*(P*)p[I]...); }
template <class... P> static inline void fake_run(void (*f)(P...), void** p) { fake_call(f, p, FakeCount<sizeof...(P)>()); }
template <class... P> static void fake_translate(void (*)(P...), void** p) { (FakeArgument<P>::translate(*p++), ...); }
template <class... P> static void fake_sizes(void (*)(P...), unsigned long* s) { ((*s++ = sizeof(P)), ...); *s = 0; }
)";

std::string without_definitions(const std::string& text) {
  std::istringstream in(text);
  std::string rest;
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, 1, "#") != 0) rest += line + "\n";
  return rest;
}

// Gives arrays of dynamic shared memory the largest size that a block may have.
std::string with_open_arrays(const std::string& text) {
  static const std::regex open(R"(extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\])");
  return std::regex_replace(text, open, "static $1 $2[232448 / sizeof($1)]");
}

// A function of CUDA C++ that only some texts name: the others' libraries are known by texts without it.
constexpr const char* kFromAddress = "__cvta_global_to_generic";
constexpr const char* kFromAddressDefined =
    "static inline void* __cvta_global_to_generic(unsigned long long n) { return fake_names.translate((void*)n); }\n";

// The same text in CUDA's words, where what HIP's prelude has of its own is not used.
std::string in_cuda(std::string text) {
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  const auto replace = [&](const char* from, const char* behind, const char* by) {
    const size_t begin = text.find(from), end = text.find(behind, begin);
    if (begin != text.npos && end != text.npos) text.replace(begin, end + strlen(behind) - begin, by);
  };
  const std::string default_device = "#pragma clang force_cuda_host_device begin\n#line 1\n";
  if (const size_t at = text.find(default_device); at != text.npos) text.erase(0, at + default_device.size());
  if (count("sqrt_f32") == 1) replace("FUNCTION f32 sqrt_f32(", "\n}\n", "#define sqrt_f32 sqrtf\n");
  if (count("naru_address") == 2)
    replace("#ifndef naru_address\n", "#endif\n", "");
  else if (count("naru_address"))
    text = std::string("#define naru_address ") + kFromAddress + "\n" + text;
  return text;
}

std::string whole(const std::string& written) {
  const std::string text = with_open_arrays(in_cuda(written)), body = without_definitions(text);
  std::string all = kBefore + std::string(text.find(kFromAddress) == text.npos ? "" : kFromAddressDefined) + text + kAfter;
  const bool barriers = body.find("BARRIER") != std::string::npos || body.find("__syncthreads") != std::string::npos;
  all += std::string("extern \"C\" { extern const int fake_barriers; const int fake_barriers = ") + (barriers ? "1" : "0") + "; }\n";
  const std::regex kernel(R"((?:KERNEL\s*\([^)]*\)|__global__\s+void(?:\s+__launch_bounds__\([^)]*\))?)\s*(\w+)\s*\()");
  for (std::sregex_iterator at(body.begin(), body.end(), kernel), end; at != end; ++at) {
    const std::string k = (*at)[1];
    all += "extern \"C\" void fake_run_" + k + "(void** p) { fake_run(" + k + ", p); }\n";
    all += "extern \"C\" void fake_translate_" + k + "(void** p) { fake_translate(" + k + ", p); }\n";
    all += "extern \"C\" void fake_sizes_" + k + "(unsigned long* s) { fake_sizes(" + k + ", s); }\n";
  }
  return all;
}

std::string library_of(const std::string& text, bool contracts, std::string& log) {
  const std::string all = whole(text) + (contracts ? "// contracted: -O2\n" : "");
  return host_library(all, text, kExtension,
                      std::string("-std=c++17 ") + (contracts ? "-O2 -ffp-contract=fast -mfma" : "-ffp-contract=off"), log);
}

}  // namespace

EXPORT int NAME(Version)(int* major, int* minor) {
#ifdef FAKE_HIP
  *major = 9, *minor = 0;
#else
  *major = 12, *minor = 9;
#endif
  return 0;
}
#ifndef FAKE_HIP
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = std::size(kArchitectures);
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int* list) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), list);
  return 0;
}
#endif
EXPORT const char* NAME(GetErrorString)(int code) {
  return code == kCompilation ? (kExtension == std::string(".hip") ? "HIPRTC_ERROR_COMPILATION" : "NVRTC_ERROR_COMPILATION") : "an error";
}
EXPORT int NAME(CreateProgram)(Program** p, const char* text, const char*, int headers, const char* const*, const char* const*) {
  if (!text || headers != 0) return kInvalidInput;
  *p = new Program{text, "", ""};
  return 0;
}
EXPORT int NAME(DestroyProgram)(Program** p) {
  delete *p;
  *p = nullptr;
  return 0;
}
EXPORT int NAME(CompileProgram)(Program* p, int count, const char* const* options) {
  std::string architecture;
  bool contracts = true, inexact = false;
#ifdef FAKE_HIP
  for (int i = 0; i < count; ++i) {
    const std::string o = options[i];
    if (o.rfind("--gpu-architecture=gfx", 0) == 0)
      architecture = o.substr(19);
    else if (o == "-ffp-contract=off")
      contracts = false;
    else if (o == "-ffp-contract=fast" && p->text.find("#pragma naru inexact") != std::string::npos)
      contracts = false, inexact = true;
    else if (o != "-fno-gpu-flush-denormals-to-zero" && o != "-std=c++17" && o != "-w" && o != "-g")
      return kInvalidOption;
  }
  if (architecture.empty() || contracts) return kInvalidOption;
#else
  for (int i = 0; i < count; ++i) {
    const std::string o = options[i];
    if (o.rfind("--gpu-architecture=", 0) == 0)
      architecture = o.substr(19);
    else if (o == "--fmad=false")
      contracts = false;
    else if (o == "--fmad=true" && p->text.find("#pragma naru inexact") != std::string::npos)
      contracts = false, inexact = true;
    else if (o != "--ftz=false" && o != "--prec-div=true" && o != "--prec-sqrt=true" && o != "-default-device" &&
             o != "--generate-line-info" && o != "--std=c++17")
      return kInvalidOption;
  }
  if (architecture.empty() || contracts) return kInvalidOption;
  if (architecture.back() == 'a') {
    if (!inexact || architecture.substr(0, 3) != "sm_") return kInvalidOption;
    architecture.pop_back();
  }
#endif
  const std::string library = library_of(p->text, inexact, p->log);
  if (library.empty()) return kCompilation;
  p->image = "FAKE " + architecture + " " + library;
  return 0;
}
EXPORT int NAME(GetProgramLogSize)(Program* p, size_t* size) {
  *size = p->log.size() + 1;
  return 0;
}
EXPORT int NAME(GetProgramLog)(Program* p, char* log) {
  strcpy(log, p->log.c_str());
  return 0;
}
#ifdef FAKE_HIP
EXPORT int hiprtcGetCodeSize(Program* p, size_t* size) {
  *size = p->image.size() + 1;
  return 0;
}
EXPORT int hiprtcGetCode(Program* p, char* code) {
  strcpy(code, p->image.c_str());
  return 0;
}
#else
namespace {
int image_size(const Program* p, size_t* size, const char* kind) {
  *size = p->image.rfind(std::string("FAKE ") + kind, 0) == 0 ? p->image.size() + 1 : 0;
  return *size ? 0 : kInvalidInput;
}
}  // namespace
EXPORT int nvrtcGetCUBINSize(Program* p, size_t* size) { return image_size(p, size, "sm_"); }
EXPORT int nvrtcGetPTXSize(Program* p, size_t* size) { return image_size(p, size, "compute_"); }
EXPORT int nvrtcGetCUBIN(Program* p, char* image) {
  strcpy(image, p->image.c_str());
  return 0;
}
EXPORT int nvrtcGetPTX(Program* p, char* image) { return nvrtcGetCUBIN(p, image); }
#endif
