#include <algorithm>
#include <array>

#include "kernels/source/cuda_source.h"

namespace naru::ir {
namespace {

struct Row {
  std::string_view name;
  const char* text;
};
const char* find(const auto& rows, std::string_view name) {
  const auto at = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.name == name; });
  return at == std::end(rows) ? nullptr : at->text;
}

// C++ selects the overload by the argument's type. Names with suffix f are C's, for float.
constexpr Row kGeneric[] = {{"exp", "naru_any_exp"},
                            {"exp2", "naru_any_exp2"},
                            {"expm1", "naru_any_expm1"},
                            {"log", "naru_any_log"},
                            {"log2", "naru_any_log2"},
                            {"log10", "naru_any_log10"},
                            {"log1p", "naru_any_log1p"},
                            {"sin", "naru_any_sin"},
                            {"cos", "naru_any_cos"},
                            {"tan", "naru_any_tan"},
                            {"asin", "naru_any_asin"},
                            {"acos", "naru_any_acos"},
                            {"atan", "naru_any_atan"},
                            {"sinh", "naru_any_sinh"},
                            {"cosh", "naru_any_cosh"},
                            {"tanh", "naru_any_tanh"},
                            {"asinh", "naru_any_asinh"},
                            {"acosh", "naru_any_acosh"},
                            {"atanh", "naru_any_atanh"},
                            {"erf", "naru_any_erf"},
                            {"erfc", "naru_any_erfc"},
                            {"lgamma", "naru_any_lgamma"},
                            {"sqrt", "naru_any_sqrt"},
                            {"rsqrt", "naru_any_rsqrt"},
                            {"pow", "naru_any_pow"},
                            {"atan2", "naru_any_atan2"},
                            {"fmod", "naru_any_fmod"},
                            {"hypot", "naru_any_hypot"},
                            {"floor", "naru_any_floor"},
                            {"ceil", "naru_any_ceil"},
                            {"trunc", "naru_any_trunc"},
                            {"round", "naru_any_round"},
                            {"rint", "naru_any_rint"},
                            {"fabs", "naru_any_fabs"},
                            {"cbrt", "naru_any_cbrt"},
                            {"tgamma", "naru_any_tgamma"},
                            {"fmin", "naru_any_fmin"},
                            {"fmax", "naru_any_fmax"},
                            {"copysign", "naru_any_copysign"},
                            {"fma", "naru_any_fma"},
                            {"ldexp", "naru_any_ldexp"},
                            {"abs", "naru_any_abs"},
                            {"min", "naru_any_min"},
                            {"max", "naru_any_max"},
                            {"isnan", "isnan"},
                            {"isinf", "isinf"},
                            {"isfinite", "isfinite"},
                            {"signbit", "signbit"},
                            {"sizeof", "sizeof"},
                            {"static_assert", "_Static_assert"}};

constexpr Row kCalls[] = {
    {"__syncthreads", "barrier"},
    {"atomicAdd", "atomic_add"},
    {"atomicSub", "atomic_sub"},
    {"atomicMin", "atomic_min"},
    {"atomicMax", "atomic_max"},
    {"atomicAnd", "atomic_and"},
    {"atomicOr", "atomic_or"},
    {"atomicXor", "atomic_xor"},
    {"atomicExch", "atomic_xchg"},
    {"atomicCAS", "atomic_cmpxchg"},
    {"__expf", "expf"},
    {"__logf", "logf"},
    {"__log2f", "log2f"},
    {"__log10f", "log10f"},
    {"__sinf", "sinf"},
    {"__cosf", "cosf"},
    {"__tanf", "tanf"},
    {"__tanhf", "tanhf"},
    {"__powf", "powf"},
    {"__fsqrt_rn", "sqrtf"},
    {"__dsqrt_rn", "sqrt"},
    {"__frsqrt_rn", "rsqrtf"},
    {"__fmaf_rn", "fmaf"},
    {"__fma_rn", "fma"},
    {"__fdividef", "naru_quotient_f"},
    {"fdividef", "naru_quotient_f"},
    {"__fdiv_rn", "naru_quotient_f"},
    {"__fadd_rn", "naru_sum_f"},
    {"__fsub_rn", "naru_difference_f"},
    {"__fmul_rn", "naru_product_f"},
    {"__frcp_rn", "naru_reciprocal_f"},
    {"__saturatef", "naru_saturate_f"},
    {"__ldg", "naru_load"},
    {"__int_as_float", "naru_int_as_float"},
    {"__uint_as_float", "naru_int_as_float"},
    {"__float_as_int", "naru_float_as_int"},
    {"__float_as_uint", "naru_float_as_uint"},
    {"__int2float_rn", "naru_to_float"},
    {"__uint2float_rn", "naru_to_float"},
    {"__double2float_rn", "naru_to_float"},
    {"__float2int_rz", "naru_to_int"},
    {"__float2int_rn", "naru_to_int_nearest"},
    {"__float2int_rd", "naru_to_int_down"},
    {"__float2int_ru", "naru_to_int_up"},
    {"__popc", "naru_popc"},
    {"__clz", "naru_clz"},
    {"__ffs", "naru_ffs"},
    {"__half2float", "half_to_float"},
    {"__float2half", "float_to_half"},
    {"__float2half_rn", "float_to_half"},
    {"__bfloat162float", "bfloat16_to_float"},
    {"__float2bfloat16", "float_to_bfloat16"},
    {"__float2bfloat16_rn", "float_to_bfloat16"},
};

constexpr Row kWords[] = {{"__device__", ""},
                          {"__host__", ""},
                          {"__forceinline__", ""},
                          {"__noinline__", ""},
                          {"__inline__", ""},
                          {"inline", ""},
                          {"__restrict__", ""},
                          {"__restrict", ""},
                          {"restrict", ""},
                          {"noexcept", ""},
                          {"__shared__", "shared"},
                          {"__constant__", "constant"},
                          {"nullptr", "0"},
                          {"NULL", "0"},
                          {"auto", "__auto_type"},
                          {"constexpr", "const"},
                          {"__half", "half"},
                          {"__nv_bfloat16", "bfloat16"},
                          {"CUDART_INF_F", "INFINITY"},
                          {"CUDART_NAN_F", "NAN"},
                          {"CUDART_PI_F", "3.141592654f"}};

constexpr const char* kWarp =
    "items of a warp have no ways of their own to exchange values on every device: use a shared array and __syncthreads()";
constexpr const char* kTemplate = "types are written out in the dialect, which is C";
constexpr const char* kClass = "the dialect is C: use a struct without functions";
constexpr const char* kVector = "vector types are not in the dialect: take its elements one by one";
constexpr const char* kMemory = "kernels allocate nothing: use a tensor or a shared array";
constexpr const char* kHost = "it is the host's";

constexpr Row kRefused[] = {{"template", kTemplate},
                            {"typename", kTemplate},
                            {"decltype", kTemplate},
                            {"class", kClass},
                            {"operator", kClass},
                            {"this", kClass},
                            {"virtual", kClass},
                            {"public", kClass},
                            {"private", kClass},
                            {"protected", kClass},
                            {"dynamic_cast", kClass},
                            {"namespace", "the dialect has no namespaces"},
                            {"try", "kernels throw no exceptions"},
                            {"throw", "kernels throw no exceptions"},
                            {"new", kMemory},
                            {"delete", kMemory},
                            {"warpSize", kWarp},
                            {"cooperative_groups", kWarp},
                            {"dim3", kHost},
                            {"asm", "it is one machine's own"},
                            {"__asm__", "it is one machine's own"},
                            {"__managed__", "pass a tensor"},
                            {"half2", kVector},
                            {"__half2", kVector},
                            {"__nv_bfloat162", kVector}};
constexpr Row kRefusedCalls[] = {{"malloc", kMemory},
                                 {"free", kMemory},
                                 {"printf", "kernels print nothing: write what you want to see to a tensor"},
                                 {"assert", "kernels stop nothing: write what went wrong to a tensor"},
                                 {"__trap", "kernels stop nothing: write what went wrong to a tensor"},
                                 {"__syncwarp", kWarp},
                                 {"__activemask", kWarp},
                                 {"__threadfence", "groups of a grid meet where a kernel ends: start a second kernel"},
                                 {"__threadfence_system", "groups of a grid meet where a kernel ends: start a second kernel"},
                                 {"__threadfence_block", "use __syncthreads()"},
                                 {"clock", "devices have no common clock: use events, or naru.profiler"},
                                 {"clock64", "devices have no common clock: use events, or naru.profiler"}};
// Name prefixes.
constexpr Row kRefusedStarts[] = {{"__shfl", kWarp},
                                  {"__ballot", kWarp},
                                  {"__any", kWarp},
                                  {"__all", kWarp},
                                  {"__match_", kWarp},
                                  {"__reduce_", kWarp},
                                  {"cuda", kHost},
                                  {"curand", "draw the numbers into a tensor first (naru.rand)"},
                                  {"tex1D", "pass a tensor"},
                                  {"tex2D", "pass a tensor"},
                                  {"tex3D", "pass a tensor"},
                                  {"surf2D", "pass a tensor"},
                                  {"make_", kVector}};
constexpr std::array<std::string_view, 9> kVectorOf = {"char", "uchar", "short", "ushort", "int", "uint", "long", "float", "double"};

constexpr std::array<std::string_view, 38> kHeaders = {"cuda_runtime.h",   "cuda_runtime_api.h",
                                                       "cuda.h",           "device_launch_parameters.h",
                                                       "cuda_fp16.h",      "cuda_bf16.h",
                                                       "math.h",           "cmath",
                                                       "math_constants.h", "stdint.h",
                                                       "cstdint",          "stddef.h",
                                                       "cstddef",          "float.h",
                                                       "cfloat",           "limits.h",
                                                       "climits",          "limits",
                                                       "stdbool.h",        "stdio.h",
                                                       "cstdio",           "stdlib.h",
                                                       "cstdlib",          "string.h",
                                                       "cstring",          "assert.h",
                                                       "cassert",          "iostream",
                                                       "iomanip",          "vector",
                                                       "string",           "algorithm",
                                                       "chrono",           "random",
                                                       "memory",           "fstream",
                                                       "time.h",           "ctime"};

constexpr std::array<std::string_view, 42> kTaken = {"kernel",
                                                     "__kernel",
                                                     "global",
                                                     "shared",
                                                     "constant",
                                                     "private",
                                                     "local",
                                                     "generic",
                                                     "barrier",
                                                     "global_id",
                                                     "global_size",
                                                     "group_id",
                                                     "num_groups",
                                                     "local_id",
                                                     "local_size",
                                                     "enqueued_local_size",
                                                     "atomic_add",
                                                     "atomic_sub",
                                                     "atomic_min",
                                                     "atomic_max",
                                                     "atomic_and",
                                                     "atomic_or",
                                                     "atomic_xor",
                                                     "atomic_xchg",
                                                     "atomic_cmpxchg",
                                                     "half_to_float",
                                                     "float_to_half",
                                                     "bfloat16_to_float",
                                                     "float_to_bfloat16",
                                                     "bfloat16",
                                                     "read_only",
                                                     "write_only",
                                                     "read_write",
                                                     "pipe",
                                                     "uniform",
                                                     "event_t",
                                                     "sampler_t",
                                                     "image1d_t",
                                                     "image2d_t",
                                                     "image3d_t",
                                                     "queue_t",
                                                     "_Bool"};

bool is_vector(std::string_view name) {
  if (name.size() < 4 || name.back() < '1' || name.back() > '4') return false;
  name.remove_suffix(1);
  return std::find(kVectorOf.begin(), kVectorOf.end(), name) != kVectorOf.end();
}

}  // namespace

const char* CudaWords::function(std::string_view name) noexcept {
  if (const char* const text = find(kGeneric, name)) return text;
  if (const char* const text = find(kCalls, name)) return text;
  // expf, fminf: unchanged.
  const bool of_float = name.ends_with('f') && find(kGeneric, name.substr(0, name.size() - 1));
  return of_float && name != "minf" && name != "maxf" && name != "absf" ? "" : nullptr;
}
const char* CudaWords::word(std::string_view name) noexcept { return find(kWords, name); }
const char* CudaWords::refusal(std::string_view name, bool called) noexcept {
  if (const char* const why = find(kRefused, name)) return why;
  if (is_vector(name)) return kVector;
  if (!called) return nullptr;
  if (const char* const why = find(kRefusedCalls, name)) return why;
  for (const Row& r : kRefusedStarts)
    if (name.starts_with(r.name)) return r.text;
  return nullptr;
}
bool CudaWords::is_header(std::string_view name) noexcept { return std::find(kHeaders.begin(), kHeaders.end(), name) != kHeaders.end(); }
bool CudaWords::is_taken(std::string_view name) noexcept { return std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end(); }

}  // namespace naru::ir
