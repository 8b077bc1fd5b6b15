// Metal's shading language, which is C++14 with address spaces. Nothing here needs float64, which it does not have.
#include "render/c/dialect.h"

namespace naru::render::c {
namespace {

// For the types that have atomic operations there, and sums of float. A compare and exchange may fail without a reason there, so it is repeated.
constexpr const char* kAtomicsInMsl = R"c(
#define NARU_ATOMIC(space, type, name, function) \
  static inline type name(volatile space type* p, type x) { \
    return function((volatile space metal::atomic_##type*)p, x, metal::memory_order_relaxed); }
#define NARU_ATOMICS(space, type) \
  NARU_ATOMIC(space, type, atomic_add, metal::atomic_fetch_add_explicit) NARU_ATOMIC(space, type, atomic_sub, metal::atomic_fetch_sub_explicit) \
  NARU_ATOMIC(space, type, atomic_and, metal::atomic_fetch_and_explicit) NARU_ATOMIC(space, type, atomic_or, metal::atomic_fetch_or_explicit) \
  NARU_ATOMIC(space, type, atomic_xor, metal::atomic_fetch_xor_explicit) NARU_ATOMIC(space, type, atomic_min, metal::atomic_fetch_min_explicit) \
  NARU_ATOMIC(space, type, atomic_max, metal::atomic_fetch_max_explicit) NARU_ATOMIC(space, type, atomic_xchg, metal::atomic_exchange_explicit) \
  static inline type atomic_cmpxchg(volatile space type* p, type old, type x) { \
    for (;;) { \
      type found = old; \
      if (metal::atomic_compare_exchange_weak_explicit((volatile space metal::atomic_##type*)p, &found, x, metal::memory_order_relaxed, \
                                                       metal::memory_order_relaxed) || found != old) return found; \
    } }
#define NARU_ATOMIC_FLOATS(space) static inline float atomic_add(volatile space float* p, float x) { \
  for (uint old = *(volatile space uint*)p;;) { \
    const uint now = atomic_cmpxchg((volatile space uint*)p, old, as_type<uint>(as_type<float>(old) + x)); \
    if (now == old) return as_type<float>(old); \
    old = now; \
  } }
NARU_ATOMICS(device, int) NARU_ATOMICS(device, uint) NARU_ATOMIC_FLOATS(device)
NARU_ATOMICS(threadgroup, int) NARU_ATOMICS(threadgroup, uint) NARU_ATOMIC_FLOATS(threadgroup)
)c";

#define NARU_MSL_HEAD         \
  "#include <metal_stdlib>\n" \
  "using namespace metal;\n"  \
  "#pragma METAL fp contract(off)\n#pragma clang fp contract(off)\n"

constexpr Dialect kMsl = {
    .name = "msl",
    // GPUs of Apple's flush denormal float32 numbers, not float16 ones, so half_to_float avoids them.
    .prelude = NARU_MSL_HEAD R"c(typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64; typedef float f32;
typedef char4 i8x4; typedef short4 i16x4; typedef int4 i32x4; typedef long4 i64x4;
typedef uchar4 u8x4; typedef ushort4 u16x4; typedef uint4 u32x4; typedef ulong4 u64x4; typedef float4 f32x4;
#define MAKE4(t, a, b, c, d) t##x4(a, b, c, d)
#define KERNEL(n) [[max_total_threads_per_threadgroup(n)]] kernel void
#define GLOBAL device
#define LOCAL threadgroup
#define FUNCTION static inline
#define GROUP naru_group
#define ITEM ((int)naru_item)
#define BARRIER threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
#define as_f32(x) as_type<float>((u32)(x))
#define as_i32(x) as_type<int>(x)
#define as_u32(x) as_type<uint>(x)
#define atomic_least(p, x) atomic_fetch_min_explicit((device atomic_uint*)(p), x, memory_order_relaxed)
#define local_count(p) atomic_fetch_add_explicit((threadgroup atomic_uint*)(p), 1u, memory_order_relaxed)
#define PARALLEL
#define UNROLL _Pragma("unroll")
)c",
    .doubles = "",
    .functions = {R"c(#define fma_f32 metal::fma
#define sqrt_f32 metal::precise::sqrt
#define fabs_f32 metal::fabs
#define floor_f32 metal::floor
#define ceil_f32 metal::ceil
#define trunc_f32 metal::trunc
#define rint_f32 metal::rint
FUNCTION f32 half_to_float(u16 h) {
  const u32 sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  const f32 finite = rest < 0x400u ? (f32)rest * 0x1p-24f : as_f32((rest << 13) + 0x38000000u);
  const u32 special = 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u);
  return as_f32(sign | (rest >= 0x7c00u ? special : as_u32(finite)));
}
)c",
                  ""},
    .number = " [[buffer({})]]",
    .arguments =
        "constant {0}& {1} [[buffer({2})]], uint naru_group [[threadgroup_position_in_grid]], "
        "uint naru_item [[thread_position_in_threadgroup]]",
    // naru_any_abs is that of words.cpp, by overloads.
    .user = {.prelude = NARU_MSL_HEAD R"c(#define restrict __restrict__
#define __auto_type auto
#define naru_as_f32(x) as_type<float>((uint)(x))
#define naru_as_u32(x) as_type<uint>((float)(x))
static inline float naru_any_abs(float x) { return metal::fabs(x); }
static inline long naru_any_abs(long x) { return x < 0 ? (long)(0ul - (ulong)x) : x; }
static inline ulong naru_any_abs(ulong x) { return x; }
static inline int naru_any_abs(int x) { return x < 0 ? (int)(0u - (uint)x) : x; }
static inline int naru_any_abs(uint x) { return naru_any_abs((int)x); }
#define sqrtf(x) metal::precise::sqrt((float)(x))
#define rsqrtf(x) metal::precise::rsqrt((float)(x))
#define expf(x) metal::precise::exp((float)(x))
#define exp2f(x) metal::precise::exp2((float)(x))
#define logf(x) metal::precise::log((float)(x))
#define log2f(x) metal::precise::log2((float)(x))
#define log10f(x) metal::precise::log10((float)(x))
#define sinf(x) metal::precise::sin((float)(x))
#define cosf(x) metal::precise::cos((float)(x))
#define tanf(x) metal::precise::tan((float)(x))
#define asinf(x) metal::precise::asin((float)(x))
#define acosf(x) metal::precise::acos((float)(x))
#define atanf(x) metal::precise::atan((float)(x))
#define sinhf(x) metal::precise::sinh((float)(x))
#define coshf(x) metal::precise::cosh((float)(x))
#define tanhf(x) metal::precise::tanh((float)(x))
#define asinhf(x) metal::precise::asinh((float)(x))
#define acoshf(x) metal::precise::acosh((float)(x))
#define atanhf(x) metal::precise::atanh((float)(x))
#define fabsf(x) metal::fabs((float)(x))
#define floorf(x) metal::floor((float)(x))
#define ceilf(x) metal::ceil((float)(x))
#define truncf(x) metal::trunc((float)(x))
#define roundf(x) metal::round((float)(x))
#define rintf(x) metal::rint((float)(x))
#define powf(x, y) metal::precise::pow((float)(x), (float)(y))
#define atan2f(x, y) metal::precise::atan2((float)(x), (float)(y))
#define fmodf(x, y) metal::precise::fmod((float)(x), (float)(y))
#define fminf(x, y) metal::fmin((float)(x), (float)(y))
#define fmaxf(x, y) metal::fmax((float)(x), (float)(y))
#define copysignf(x, y) metal::copysign((float)(x), (float)(y))
#define ldexpf(x, n) metal::ldexp((float)(x), (int)(n))
#define fmaf(x, y, z) metal::fma((float)(x), (float)(y), (float)(z))
#define cbrtf(x) metal::copysign(metal::precise::pow(metal::fabs((float)(x)), 1.0f / 3.0f), (float)(x))
)c",
             .entry = "[[max_total_threads_per_threadgroup({})]] kernel void",
             .any_entry = "kernel void",
             .global = "device",
             .shared = "threadgroup",
             .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)",
             .shared_pointer = "threadgroup",
             .private_pointer = "thread",
             .constant = "constant",
             .constant_pointer = "constant",
             .group = "naru_group",
             .item = "naru_item",
             .atomics = kAtomicsInMsl},
};

}  // namespace

const Dialect& msl() noexcept { return kMsl; }

}  // namespace naru::render::c
