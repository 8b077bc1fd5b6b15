#include "render/c/user_dialect.h"

#include <string_view>

namespace naru::render::c {
namespace {

constexpr UserDialect kOpenCl = {
    R"c(#pragma OPENCL FP_CONTRACT OFF
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
    "kernel __attribute__((reqd_work_group_size({}, 1, 1))) void",
    "kernel void",
    "global",
    "local",
    "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    "local",
    "private",
    "constant",
    "constant",
    "get_group_id(0)",
    "get_local_id(0)"};

constexpr UserDialect kCuda = {
    R"c(typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
#define restrict __restrict__
#define naru_as_f32(x) __uint_as_float((unsigned)(x))
#define naru_as_u32(x) __float_as_uint(x)
#define naru_as_f64(x) __longlong_as_double((long long)(x))
#define atomic_add(p, x) atomicAdd(p, x)
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#endif
#ifndef INT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#endif
)c",
    "extern \"C\" __global__ void __launch_bounds__({})",
    "extern \"C\" __global__ void __launch_bounds__(1024)",  // a thread of so many has registers left
    "",
    "__shared__",
    "__syncthreads()",
    "",
    "",
    "__constant__ const",
    "const",
    "blockIdx.x",
    "threadIdx.x"};

constexpr UserDialect kC = {
    R"c(#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
static inline float naru_as_f32(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static inline unsigned naru_as_u32(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
static inline double naru_as_f64(unsigned long x) { double f; memcpy(&f, &x, 8); return f; }
static inline unsigned long naru_as_u64(double x) { unsigned long u; memcpy(&u, &x, 8); return u; }
#define min(a, b) ({ __typeof__((a) + (b)) naru_x = (a), naru_y = (b); naru_x < naru_y ? naru_x : naru_y; })
#define max(a, b) ({ __typeof__((a) + (b)) naru_x = (a), naru_y = (b); naru_x > naru_y ? naru_x : naru_y; })
#define atomic_add(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)
)c", "", "", "", "static __thread", "naru_barrier(naru_here.team)", "", "", "static const", "const", "", ""};

constexpr Dialect kPlainC = {"c",
                             R"c(typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64; typedef float f32;
#define FUNCTION static inline
#define as_f32(x) naru_as_f32((u32)(x))
#define as_i32(x) ((i32)naru_as_u32(x))
#define as_u32(x) naru_as_u32(x)
#define as_i64(x) ((i64)naru_as_u64(x))
#define as_u64(x) naru_as_u64(x)
)c",
                             R"c(typedef double f64;
#define as_f64(x) naru_as_f64((u64)(x))
)c",
                             {R"c(#define fma_f32 __builtin_fmaf
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
)c",
                              ""}};

}  // namespace

const Dialect& plain_c() noexcept { return kPlainC; }
const UserDialect& user_dialect(const Dialect& dialect) noexcept { return std::string_view(dialect.name) == "cuda" ? kCuda : kOpenCl; }
const UserDialect& user_c() noexcept { return kC; }

const char* const kPlace = R"c(typedef struct { unsigned short bits; } naru_half;
typedef struct { unsigned short bits; } naru_bfloat16;
struct naru_work_group;
typedef struct { naru_i global_[3], group_[3], local_[3], size_[3], groups_[3], items_[3]; NARU_TEAM } naru_place;
#define global_id(d) (naru_here.global_[d])
#define group_id(d) (naru_here.group_[d])
#define local_id(d) (naru_here.local_[d])
#define local_size(d) (naru_here.size_[d])
#define num_groups(d) (naru_here.groups_[d])
#define global_size(d) (naru_here.items_[d])
static inline float half_to_float(naru_half h) {
  const unsigned sign = (h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  const float finite = naru_as_f32(rest << 13) * naru_as_f32(0x77800000u);
  const unsigned special = 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u);
  return naru_as_f32(sign | (rest >= 0x7c00u ? special : naru_as_u32(finite)));
}
static inline naru_half float_to_half(float x) {
  const unsigned bits = naru_as_u32(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  const unsigned tiny = naru_as_u32(naru_as_f32(rest) + 0.5f) - 0x3f000000u;
  const unsigned normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  const unsigned huge = rest > 0x7f800000u ? 0x7e00u | (rest >> 13 & 0x3ffu) : 0x7c00u;
  naru_half h;
  h.bits = (unsigned short)(sign | (rest >= 0x477ff000u ? huge : rest < 0x38800000u ? tiny : normal));
  return h;
}
static inline float bfloat16_to_float(naru_bfloat16 b) { return naru_as_f32((unsigned)b.bits << 16); }
static inline naru_bfloat16 float_to_bfloat16(float x) {
  const unsigned bits = naru_as_u32(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  naru_bfloat16 b;
  b.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
  return b;
}
)c";

}  // namespace naru::render::c
