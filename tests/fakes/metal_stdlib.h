// What naru's kernels in Metal's language use of <metal_stdlib>, for the machine's own C++14 compiler (see metal.cpp). Address spaces mean nothing here,
// unless FAKE_SPACES makes clang's of them; then the text is only checked.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef decltype(sizeof 0) size_t;

#ifdef FAKE_SPACES
#define device __attribute__((address_space(1)))
#define threadgroup __attribute__((address_space(3)))
#define FAKE_VECTOR(type) typedef type type##4 __attribute__((ext_vector_type(4)));
#else
#define device
#define threadgroup
#define FAKE_VECTOR(type)                                               \
  struct alignas(sizeof(type) * 4) type##4 {                            \
    type x, y, z, w;                                                    \
    type##4() = default;                                                \
    type##4(type a, type b, type c, type d) : x(a), y(b), z(c), w(d) {} \
  };
#endif
#define constant const
#define thread
#define kernel static
FAKE_VECTOR(char)
FAKE_VECTOR(uchar)
FAKE_VECTOR(short)
FAKE_VECTOR(ushort)
FAKE_VECTOR(int)
FAKE_VECTOR(uint)
FAKE_VECTOR(long)
FAKE_VECTOR(ulong)
FAKE_VECTOR(float)

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f

template <class T, class U>
static inline T as_type(U value) {
  static_assert(sizeof(T) == sizeof(U), "as_type: sizes differ");
  T result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

extern "C" {
extern struct FakePlace {
  unsigned item, group;
  void (*barrier)();
} fake_place;
}

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
static inline mem_flags operator|(mem_flags a, mem_flags b) { return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b)); }
static inline void threadgroup_barrier(mem_flags) { fake_place.barrier(); }

enum memory_order { memory_order_relaxed };
#ifdef FAKE_SPACES
#define FAKE_ATOMIC(space, type, result, name, now)                           \
  static inline result name(volatile space type* p, result x, memory_order) { \
    const result old = *p;                                                    \
    *p = now;                                                                 \
    return old;                                                               \
  }
#define FAKE_SPACES_OF(type, result, name, now) \
  FAKE_ATOMIC(device, type, result, name, now) FAKE_ATOMIC(threadgroup, type, result, name, now)
#else
#define FAKE_SPACES_OF(type, result, name, now)                         \
  static inline result name(volatile type* p, result x, memory_order) { \
    const result old = *p;                                              \
    *p = now;                                                           \
    return old;                                                         \
  }
#endif
#define FAKE_ATOMICS(type, atomic)                                           \
  typedef type atomic;                                                       \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_add_explicit, old + x)           \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_sub_explicit, old - x)           \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_and_explicit, old& x)            \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_or_explicit, old | x)            \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_xor_explicit, old ^ x)           \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_min_explicit, x < old ? x : old) \
  FAKE_SPACES_OF(atomic, type, atomic_fetch_max_explicit, x > old ? x : old) \
  FAKE_SPACES_OF(atomic, type, atomic_exchange_explicit, x)
FAKE_ATOMICS(int, atomic_int)
FAKE_ATOMICS(uint, atomic_uint)
// It may fail without a reason, and does so every other time.
template <class P, class T>
static inline bool atomic_compare_exchange_weak_explicit(P p, T* old, T x, memory_order, memory_order) {
  static int turn = 0;
  const T found = *p;
  if (found == *old && (++turn & 1)) return false;
  if (found == *old) {
    *p = x;
    return true;
  }
  *old = found;
  return false;
}

#define FAKE_1(name) \
  static inline float name(float x) { return __builtin_##name##f(x); }
#define FAKE_2(name) \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
// Lists of macros.
// clang-format off
FAKE_1(fabs) FAKE_1(floor) FAKE_1(ceil) FAKE_1(trunc) FAKE_1(rint) FAKE_1(round)
FAKE_2(fmin) FAKE_2(fmax) FAKE_2(copysign)
    // clang-format on
    static inline float fma(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
static inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
static inline int abs(int x) { return x < 0 ? -x : x; }
#define FAKE_PAIR(type)                                            \
  static inline type min(type a, type b) { return b < a ? b : a; } \
  static inline type max(type a, type b) { return a < b ? b : a; }
// clang-format off
FAKE_PAIR(int) FAKE_PAIR(uint) FAKE_PAIR(long) FAKE_PAIR(ulong) FAKE_PAIR(float)
namespace precise {
FAKE_1(sqrt) FAKE_1(exp) FAKE_1(exp2) FAKE_1(log) FAKE_1(log2) FAKE_1(log10) FAKE_1(sin) FAKE_1(cos) FAKE_1(tan)
FAKE_1(asin) FAKE_1(acos) FAKE_1(atan) FAKE_1(sinh) FAKE_1(cosh) FAKE_1(tanh) FAKE_1(asinh) FAKE_1(acosh) FAKE_1(atanh)
FAKE_2(pow) FAKE_2(atan2) FAKE_2(fmod)
static inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
  // clang-format on
}  // namespace precise
}  // namespace metal

#undef FAKE_VECTOR
#undef FAKE_ATOMIC
#undef FAKE_ATOMICS
#undef FAKE_SPACES_OF
#undef FAKE_1
#undef FAKE_2
#undef FAKE_PAIR
