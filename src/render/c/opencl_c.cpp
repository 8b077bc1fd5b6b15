#include "render/c/dialect.h"

namespace naru::render::c {
namespace {

// OpenCL has atomics for integers only.
constexpr const char* kAtomicsInOpenCl = R"c(
#define NARU_ADD_INTEGERS(space, type) \
  __attribute__((overloadable)) static type naru_atomic_add(volatile space type* p, type x) { return atomic_add(p, x); }
#define NARU_ADD_FLOATS(space) __attribute__((overloadable)) static float naru_atomic_add(volatile space float* p, float x) { \
  volatile space int* at = (volatile space int*)p; \
  for (int old = *at;;) { \
    const int now = atomic_cmpxchg(at, old, as_int(as_float(old) + x)); \
    if (now == old) return as_float(old); \
    old = now; \
  } }
NARU_ADD_INTEGERS(global, int) NARU_ADD_INTEGERS(global, uint) NARU_ADD_INTEGERS(local, int) NARU_ADD_INTEGERS(local, uint)
NARU_ADD_FLOATS(global) NARU_ADD_FLOATS(local)
#define atomic_add(p, x) naru_atomic_add(p, x)
)c";

constexpr Dialect kOpenCl = {
    .name = "opencl",
    .prelude = R"c(#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64; typedef float f32;
typedef char4 i8x4; typedef short4 i16x4; typedef int4 i32x4; typedef long4 i64x4;
typedef uchar4 u8x4; typedef ushort4 u16x4; typedef uint4 u32x4; typedef ulong4 u64x4; typedef float4 f32x4;
#define MAKE4(t, a, b, c, d) (t##x4)(a, b, c, d)
#define KERNEL(n) kernel __attribute__((reqd_work_group_size(n, 1, 1))) void
#define GLOBAL global
#define LOCAL local
#define FUNCTION static
#define GROUP get_group_id(0)
#define ITEM ((int)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define as_f32 as_float
#define as_i32 as_int
#define as_u32 as_uint
#define as_i64 as_long
#define as_u64 as_ulong
#define atomic_least(p, x) atomic_min(p, x)
#define local_count(p) atomic_inc(p)
#define PARALLEL _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL _Pragma("unroll")
)c",
    .doubles = R"c(typedef double f64; typedef double4 f64x4;
#define as_f64 as_double
)c",
    .functions = {R"c(#define fma_f32 fma
#define sqrt_f32 sqrt
#define fabs_f32 fabs
#define floor_f32 floor
#define ceil_f32 ceil
#define trunc_f32 trunc
#define rint_f32 rint
#define fma_f64 fma
#define sqrt_f64 sqrt
#define fabs_f64 fabs
#define floor_f64 floor
#define ceil_f64 ceil
#define trunc_f64 trunc
#define rint_f64 rint
)c",
                  // Builtins: the library's functions are calls, which keep PoCL from vectorising loops.
                  R"c(#define fma_f32 __builtin_fmaf
#define sqrt_f32 __builtin_sqrtf
#define fabs_f32 __builtin_fabsf
#define floor_f32 __builtin_floorf
#define ceil_f32 __builtin_ceilf
#define trunc_f32 __builtin_truncf
#define rint_f32 __builtin_rintf
#define fma_f64 __builtin_fma
#define sqrt_f64 __builtin_sqrt
#define fabs_f64 __builtin_fabs
#define floor_f64 __builtin_floor
#define ceil_f64 __builtin_ceil
#define trunc_f64 __builtin_trunc
#define rint_f64 __builtin_rint
)c"},
    .user = {.prelude = R"c(#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;
#define naru_as_f32(x) as_float((uint)(x))
#define naru_as_u32(x) as_uint(x)
#define naru_as_f64(x) as_double((ulong)(x))
#define sqrtf(x) sqrt((float)(x))
#define rsqrtf(x) rsqrt((float)(x))
#define cbrtf(x) cbrt((float)(x))
#define expf(x) exp((float)(x))
#define exp2f(x) exp2((float)(x))
#define expm1f(x) expm1((float)(x))
#define logf(x) log((float)(x))
#define log2f(x) log2((float)(x))
#define log10f(x) log10((float)(x))
#define log1pf(x) log1p((float)(x))
#define sinf(x) sin((float)(x))
#define cosf(x) cos((float)(x))
#define tanf(x) tan((float)(x))
#define asinf(x) asin((float)(x))
#define acosf(x) acos((float)(x))
#define atanf(x) atan((float)(x))
#define sinhf(x) sinh((float)(x))
#define coshf(x) cosh((float)(x))
#define tanhf(x) tanh((float)(x))
#define asinhf(x) asinh((float)(x))
#define acoshf(x) acosh((float)(x))
#define atanhf(x) atanh((float)(x))
#define erff(x) erf((float)(x))
#define erfcf(x) erfc((float)(x))
#define tgammaf(x) tgamma((float)(x))
#define lgammaf(x) lgamma((float)(x))
#define fabsf(x) fabs((float)(x))
#define floorf(x) floor((float)(x))
#define ceilf(x) ceil((float)(x))
#define truncf(x) trunc((float)(x))
#define roundf(x) round((float)(x))
#define rintf(x) rint((float)(x))
#define powf(x, y) pow((float)(x), (float)(y))
#define atan2f(x, y) atan2((float)(x), (float)(y))
#define fmodf(x, y) fmod((float)(x), (float)(y))
#define fminf(x, y) fmin((float)(x), (float)(y))
#define fmaxf(x, y) fmax((float)(x), (float)(y))
#define hypotf(x, y) hypot((float)(x), (float)(y))
#define copysignf(x, y) copysign((float)(x), (float)(y))
#define ldexpf(x, n) ldexp((float)(x), (int)(n))
#define fmaf(x, y, z) fma((float)(x), (float)(y), (float)(z))
)c",
             .entry = "kernel __attribute__((reqd_work_group_size({}, 1, 1))) void",
             .any_entry = "kernel void",
             .global = "global",
             .shared = "local",
             .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
             .shared_pointer = "local",
             .private_pointer = "private",
             .constant = "constant",
             .constant_pointer = "constant",
             .group = "get_group_id(0)",
             .item = "get_local_id(0)",
             .atomics = kAtomicsInOpenCl},
};

}  // namespace

const Dialect& opencl() noexcept { return kOpenCl; }

}  // namespace naru::render::c
