#include "render/c/user_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace naru::render::c {
namespace {

// Any type of four or eight bytes.
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

// OpenCL has them for integers.
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

// C for what CUDA C++ has and C has not. fmin and fmax take the number beside a NaN; so do min and max of floating numbers.
constexpr const char* kCudaWords = R"c(
#define naru_any_min(a, b) ({ __auto_type naru_p = (a); __auto_type naru_q = (b); \
  __typeof__(naru_p + naru_q) naru_x = naru_p, naru_y = naru_q; naru_x < naru_y || naru_y != naru_y ? naru_x : naru_y; })
#define naru_any_max(a, b) ({ __auto_type naru_p = (a); __auto_type naru_q = (b); \
  __typeof__(naru_p + naru_q) naru_x = naru_p, naru_y = naru_q; naru_x > naru_y || naru_y != naru_y ? naru_x : naru_y; })
static inline int naru_abs_int(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
static inline long naru_abs_long(long x) { return x < 0 ? (long)(0ul - (unsigned long)x) : x; }
#define naru_quotient_f(a, b) ((float)(a) / (float)(b))
#define naru_sum_f(a, b) ((float)(a) + (float)(b))
#define naru_difference_f(a, b) ((float)(a) - (float)(b))
#define naru_product_f(a, b) ((float)(a) * (float)(b))
#define naru_reciprocal_f(a) (1.0f / (float)(a))
static inline float naru_saturate_f(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
#define naru_load(p) (*(p))
#define naru_int_as_float(x) naru_as_f32((unsigned)(x))
#define naru_float_as_int(x) ((int)naru_as_u32((float)(x)))
#define naru_float_as_uint(x) naru_as_u32((float)(x))
#define naru_to_float(x) ((float)(x))
#define naru_to_int(x) ((int)(float)(x))
#define naru_to_int_nearest(x) ((int)rintf(x))
#define naru_to_int_down(x) ((int)floorf(x))
#define naru_to_int_up(x) ((int)ceilf(x))
static inline int naru_popc(unsigned x) {
  x -= x >> 1 & 0x55555555u, x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return (int)(((x + (x >> 4) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}
static inline int naru_clz(unsigned x) {
  x |= x >> 1, x |= x >> 2, x |= x >> 4, x |= x >> 8, x |= x >> 16;
  return 32 - naru_popc(x);
}
static inline int naru_ffs(unsigned x) { return x ? naru_popc(x ^ (x - 1)) : 0; }
)c";

struct Plain {
  const char* name;
  int arguments;
};
// The device's own; naru's are in user_math.cpp.
constexpr Plain kPlain[] = {{"floor", 1},  {"ceil", 1}, {"trunc", 1}, {"round", 1},    {"rint", 1}, {"fabs", 1}, {"cbrt", 1},
                            {"tgamma", 1}, {"fmin", 2}, {"fmax", 2},  {"copysign", 2}, {"fma", 3},  {"ldexp", 2}};

bool mentions(const ir::KernelSource& source, std::string_view start) {
  for (size_t i = 0; i < source.tokens().size(); ++i)
    if (source.word(i).starts_with(start)) return true;
  return false;
}

}  // namespace

std::string generic_function(const std::string& name, int arguments, const std::string& of_float, const std::string& of_double,
                             bool doubles) {
  constexpr const char* kNames[] = {"a", "b", "c"};
  const bool whole = name == "ldexp";
  std::string parameters, values, sum, floats, halves;
  for (int i = 0; i < arguments; ++i) {
    const char* const comma = i ? ", " : "";
    const char* const wide = whole && i ? "int" : "double";
    parameters += fmt::format("{}{}", comma, kNames[i]);
    values += fmt::format("__auto_type naru_{0} = ({0}); ", kNames[i]);
    if (!whole || !i) sum += fmt::format("{}naru_{}", i ? " + " : "", kNames[i]);
    floats += fmt::format("{}({})naru_{}", comma, whole && i ? "int" : "float", kNames[i]);
    halves += fmt::format("{}({})naru_{}", comma, wide, kNames[i]);
  }
  const std::string choice = doubles ? fmt::format("_Generic({}, float: {}({}), default: {}({}))", sum, of_float, floats, of_double, halves)
                                     : fmt::format("{}({})", of_float, floats);
  return fmt::format("#define naru_any_{}({}) ({{ {}{}; }})\n", name, parameters, values, choice);
}

std::string user_words(const ir::KernelSource& source, const Target& target) {
  std::string text;
  if (mentions(source, "atomic_"))
    text += target.dialect == &opencl() ? kAtomicsInOpenCl : target.dialect == &cuda() ? kAtomicsInCuda : kAtomicsInC;
  if (!source.was_cuda()) return text;
  const bool doubles = target.arithmetic.fp64 || target.dialect == &plain_c();
  text += kCudaWords;
  text += fmt::format(
      "#define naru_any_abs(x) ({{ __auto_type naru_v = (x); __typeof__(+naru_v) naru_w = naru_v; _Generic(naru_w, "
      "float: fabsf((float)naru_w), {}long: naru_abs_long((long)naru_w), default: naru_abs_int((int)naru_w)); }})\n",
      doubles ? "double: fabs((double)naru_w), " : "");
  for (const Plain& f : kPlain)
    if (mentions(source, std::string("naru_any_") + f.name))
      text += generic_function(f.name, f.arguments, std::string(f.name) + "f", f.name, doubles);
  return text;
}

}  // namespace naru::render::c
