#include "render/c/dialect.h"

namespace naru::render::c {
namespace {

// For any type of four or eight bytes.
constexpr const char* kAtomicsInC = R"c(
#define naru_atomic(p, x, result) ({ __auto_type naru_y = (x); __typeof__((p) + 0) naru_p = (p); \
  __typeof__(*naru_p) naru_x = naru_y, naru_o = *naru_p, naru_n; do { naru_n = (result); } \
  while (!__atomic_compare_exchange(naru_p, &naru_o, &naru_n, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); naru_o; })
#define naru_integers(p) ((__typeof__(_Generic(*(p), float: (int*)0, double: (long*)0, default: (p) + 0)))(p))
#define atomic_add(p, x) _Generic(*(p), float: naru_atomic(p, x, naru_o + naru_x), double: naru_atomic(p, x, naru_o + naru_x), \
  default: __atomic_fetch_add(naru_integers(p), x, __ATOMIC_RELAXED))
#define atomic_sub(p, x) __atomic_fetch_sub(p, x, __ATOMIC_RELAXED)
#define atomic_and(p, x) __atomic_fetch_and(p, x, __ATOMIC_RELAXED)
#define atomic_or(p, x) __atomic_fetch_or(p, x, __ATOMIC_RELAXED)
#define atomic_xor(p, x) __atomic_fetch_xor(p, x, __ATOMIC_RELAXED)
#define atomic_min(p, x) naru_atomic(p, x, naru_x < naru_o ? naru_x : naru_o)
#define atomic_max(p, x) naru_atomic(p, x, naru_x > naru_o ? naru_x : naru_o)
#define atomic_xchg(p, x) naru_atomic(p, x, naru_x)
#define atomic_cmpxchg(p, old, x) ({ __typeof__((p) + 0) naru_p = (p); __typeof__(*naru_p) naru_o = (old), naru_n = (x); \
  __atomic_compare_exchange(naru_p, &naru_o, &naru_n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); naru_o; })
)c";

constexpr Dialect kPlainC = {
    .name = "c",
    .prelude = R"c(typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64; typedef float f32;
#define FUNCTION static inline
#define as_f32(x) naru_as_f32((u32)(x))
#define as_i32(x) ((i32)naru_as_u32(x))
#define as_u32(x) naru_as_u32(x)
#define as_i64(x) ((i64)naru_as_u64(x))
#define as_u64(x) naru_as_u64(x)
)c",
    .doubles = R"c(typedef double f64;
#define as_f64(x) naru_as_f64((u64)(x))
)c",
    .functions = {R"c(#define fma_f32 __builtin_fmaf
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
                  ""},
    .user = {.prelude = R"c(#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
static inline float naru_as_f32(unsigned x) { float f; __builtin_memcpy(&f, &x, 4); return f; }
static inline unsigned naru_as_u32(float x) { unsigned u; __builtin_memcpy(&u, &x, 4); return u; }
static inline double naru_as_f64(unsigned long x) { double f; __builtin_memcpy(&f, &x, 8); return f; }
static inline unsigned long naru_as_u64(double x) { unsigned long u; __builtin_memcpy(&u, &x, 8); return u; }
#define min(a, b) ({ __typeof__((a) + (b)) naru_x = (a), naru_y = (b); naru_x < naru_y ? naru_x : naru_y; })
#define max(a, b) ({ __typeof__((a) + (b)) naru_x = (a), naru_y = (b); naru_x > naru_y ? naru_x : naru_y; })
static inline int naru_abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
#define abs(x) naru_abs(x)
)c",
             .entry = "",
             .any_entry = "",
             .global = "",
             .shared = "static __thread",
             .barrier = "naru_barrier(naru_here.work_group)",
             .shared_pointer = "",
             .private_pointer = "",
             .constant = "static const",
             .constant_pointer = "const",
             .group = "",
             .item = "",
             .atomics = kAtomicsInC},
};

}  // namespace

const Dialect& plain_c() noexcept { return kPlainC; }

}  // namespace naru::render::c
