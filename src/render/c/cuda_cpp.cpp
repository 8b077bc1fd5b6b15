#include "render/c/dialect.h"

namespace naru::render::c {
namespace {

constexpr const char* kAtomicsInCuda = R"c(
#define atomic_add(p, x) atomicAdd(p, x)
#define atomic_sub(p, x) atomicSub(p, x)
#define atomic_and(p, x) atomicAnd(p, x)
#define atomic_or(p, x) atomicOr(p, x)
#define atomic_xor(p, x) atomicXor(p, x)
#define atomic_min(p, x) atomicMin(p, x)
#define atomic_max(p, x) atomicMax(p, x)
#define atomic_xchg(p, x) atomicExch(p, x)
#define atomic_cmpxchg(p, old, x) atomicCAS(p, old, x)
)c";

// Functions that CUDA and HIP both round correctly.
#define NARU_ROUNDED_ALIKE     \
  "#define fabs_f32 fabsf\n"   \
  "#define floor_f32 floorf\n" \
  "#define ceil_f32 ceilf\n"   \
  "#define trunc_f32 truncf\n" \
  "#define rint_f32 rintf\n"   \
  "#define fma_f64 fma\n"      \
  "#define sqrt_f64 sqrt\n"    \
  "#define fabs_f64 fabs\n"    \
  "#define floor_f64 floor\n"  \
  "#define ceil_f64 ceil\n"    \
  "#define trunc_f64 trunc\n"  \
  "#define rint_f64 rint\n"

constexpr Dialect kCuda = {
    .name = "cuda",
    .prelude = R"c(typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64; typedef float f32;
#define VECTOR(t, bytes) struct __align__(bytes) t##x4 { t x, y, z, w; };
VECTOR(i8, 4) VECTOR(i16, 8) VECTOR(i32, 16) VECTOR(i64, 16) VECTOR(u8, 4) VECTOR(u16, 8) VECTOR(u32, 16) VECTOR(u64, 16) VECTOR(f32, 16)
#define MAKE4(t, a, b, c, d) t##x4{a, b, c, d}
#define KERNEL(n) extern "C" __global__ void __launch_bounds__(n)
#define GLOBAL
#define LOCAL __shared__
#define FUNCTION static __device__ __forceinline__
#define GROUP blockIdx.x
#define ITEM ((int)threadIdx.x)
#define BARRIER __syncthreads()
#define as_f32(x) __int_as_float((int)(x))
#define as_i32(x) __float_as_int(x)
#define as_u32(x) __float_as_uint(x)
#define as_i64(x) __double_as_longlong(x)
#define as_u64(x) ((u64)__double_as_longlong(x))
#define atomic_least(p, x) atomicMin(p, x)
#define local_count(p) atomicAdd(p, 1u)
#define PARALLEL
#define UNROLL _Pragma("unroll")
)c",
    .doubles = R"c(typedef double f64; VECTOR(f64, 16)
#define as_f64(x) __longlong_as_double((i64)(x))
)c",
    .functions = {R"c(#define fma_f32 fmaf
#define sqrt_f32 sqrtf
)c" NARU_ROUNDED_ALIKE,
                  ""},
    .address = "__cvta_global_to_generic({})",
    .cuda_words = true,
    .user = {.prelude = R"c(typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
#define restrict __restrict__
#define naru_as_f32(x) __uint_as_float((unsigned)(x))
#define naru_as_u32(x) __float_as_uint(x)
#define naru_as_f64(x) __longlong_as_double((long long)(x))
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
             .entry = "extern \"C\" __global__ void __launch_bounds__({})",
             .any_entry = "extern \"C\" __global__ void __launch_bounds__(1024)",  // leaves registers for 1024 threads
             .global = "",
             .shared = "__shared__",
             .barrier = "__syncthreads()",
             .shared_pointer = "",
             .private_pointer = "",
             .constant = "__constant__ const",
             .constant_pointer = "const",
             .group = "blockIdx.x",
             .item = "threadIdx.x",
             .atomics = kAtomicsInCuda},
};

// AMD's hipRTC compiles the same code. Its square root of float32 may be one ulp off: the residuals of both neighbours, by fused multiply-adds,
// select the nearest.
constexpr const char* kHipFunctions = R"c(#define fma_f32 fmaf
FUNCTION f32 sqrt_f32(f32 x) {
  const bool tiny = x < 0x1p-96f;
  const f32 a = tiny ? x * 0x1p32f : x;
  f32 s = sqrtf(a);
  const f32 below = as_f32(as_u32(s) - 1u), above = as_f32(as_u32(s) + 1u);
  if (!(a > 0.0f && a < as_f32(0x7f800000u))) return sqrtf(x);
  s = fmaf(-below, s, a) <= 0.0f ? below : fmaf(-above, s, a) > 0.0f ? above : s;
  return tiny ? s * 0x1p-16f : s;
}
)c" NARU_ROUNDED_ALIKE R"c(#ifndef naru_address
#define naru_address(n) ((void*)(n))
#endif
)c";

constexpr Dialect hip_of(Dialect d) {
  d.name = "hip";
  d.functions[0] = kHipFunctions;
  d.address = "naru_address({})";
  return d;
}
constexpr Dialect kHip = hip_of(kCuda);

}  // namespace

const Dialect& cuda() noexcept { return kCuda; }
const Dialect& hip() noexcept { return kHip; }

}  // namespace naru::render::c
