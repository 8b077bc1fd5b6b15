#include "kernels/text/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace naru::render::c {
namespace {

// CUDA C++ functions that C lacks. fmin and fmax return the other operand for a NaN; so do min and max of floating-point operands.
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
// The device's own functions; naru's are in math.cpp.
constexpr Plain kPlain[] = {{"floor", 1},  {"ceil", 1}, {"trunc", 1}, {"round", 1},    {"rint", 1}, {"fabs", 1}, {"cbrt", 1},
                            {"tgamma", 1}, {"fmin", 2}, {"fmax", 2},  {"copysign", 2}, {"fma", 3},  {"ldexp", 2}};

bool mentions(const ir::KernelSource& source, std::string_view start) {
  for (size_t i = 0; i < source.tokens().size(); ++i)
    if (source.word(i).starts_with(start)) return true;
  return false;
}

// Goes before a user's own source; names that the user defines are skipped. Functions of integers and of mixed types are those of double,
// as in C++.
constexpr const char* kNativeWords = R"c(#ifndef INT_MAX
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
#ifndef NAN
#define NAN (__int_as_float(0x7fffffff))
#endif
#ifndef INFINITY
#define INFINITY (__int_as_float(0x7f800000))
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000ll))
#define HUGE_VALF INFINITY
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#ifdef __CUDACC_RTC__
template <class T> struct naru_number { static const int kind = 0; };
#define NARU_NUMBER(t, k) template <> struct naru_number<t> { static const int kind = k; };
NARU_NUMBER(signed char, 1) NARU_NUMBER(unsigned char, 1) NARU_NUMBER(char, 1) NARU_NUMBER(short, 1) NARU_NUMBER(unsigned short, 1)
NARU_NUMBER(int, 1) NARU_NUMBER(unsigned, 1) NARU_NUMBER(long, 1) NARU_NUMBER(unsigned long, 1) NARU_NUMBER(long long, 1)
NARU_NUMBER(unsigned long long, 1) NARU_NUMBER(float, 2) NARU_NUMBER(double, 3)
#undef NARU_NUMBER
template <bool, class T> struct naru_if {};
template <class T> struct naru_if<true, T> { typedef T type; };
template <class A, class B> struct naru_two { static const bool differ = naru_number<A>::kind && naru_number<B>::kind; };
template <class A> struct naru_two<A, A> { static const bool differ = false; };
#define NARU_WHOLE(f) \
  template <class T> __device__ inline typename naru_if<naru_number<T>::kind == 1, double>::type f(T a) { return f((double)a); }
#define NARU_PAIR(f) \
  template <class A, class B> __device__ inline typename naru_if<naru_two<A, B>::differ, double>::type f(A a, B b) { return f((double)a, (double)b); }
#define NARU_CHOICE(f, sign) \
  template <class A, class B> __device__ inline auto f(A a, B b) -> typename naru_if<naru_two<A, B>::differ, decltype(a + b)>::type { \
    typedef decltype(a + b) T; \
    return (T)a sign (T)b || (T)b != (T)b ? (T)a : (T)b; \
  }
NARU_WHOLE(floor) NARU_WHOLE(ceil) NARU_WHOLE(trunc) NARU_WHOLE(round) NARU_WHOLE(rint) NARU_WHOLE(sqrt) NARU_WHOLE(cbrt) NARU_WHOLE(exp)
NARU_WHOLE(exp2) NARU_WHOLE(expm1) NARU_WHOLE(log) NARU_WHOLE(log2) NARU_WHOLE(log10) NARU_WHOLE(log1p) NARU_WHOLE(sin) NARU_WHOLE(cos)
NARU_WHOLE(tan) NARU_WHOLE(asin) NARU_WHOLE(acos) NARU_WHOLE(atan) NARU_WHOLE(sinh) NARU_WHOLE(cosh) NARU_WHOLE(tanh) NARU_WHOLE(erf)
NARU_PAIR(pow) NARU_PAIR(fmod) NARU_PAIR(atan2) NARU_PAIR(hypot) NARU_PAIR(fmin) NARU_PAIR(fmax) NARU_PAIR(copysign)
NARU_CHOICE(min, <) NARU_CHOICE(max, >)
#undef NARU_WHOLE
#undef NARU_PAIR
#undef NARU_CHOICE
namespace std {
using ::floor; using ::ceil; using ::trunc; using ::round; using ::rint; using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::expm1;
using ::log; using ::log2; using ::log10; using ::log1p; using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan;
using ::sinh; using ::cosh; using ::tanh; using ::erf; using ::erfc; using ::pow; using ::fmod; using ::atan2; using ::hypot; using ::fmin;
using ::fmax; using ::copysign; using ::fma; using ::min; using ::max; using ::abs; using ::fabs;
}
#endif
)c";

}  // namespace

std::string_view native_words() { return kNativeWords; }

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
  if (mentions(source, "atomic_")) text += target.dialect->user.atomics;
  if (!source.was_cuda()) return text;
  const bool doubles = target.arithmetic.fp64 || target.dialect == &plain_c();
  text += kCudaWords;
  if (std::string_view(target.dialect->user.prelude).find("naru_any_abs(") == std::string_view::npos)
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
