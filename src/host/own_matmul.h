// Our own product kernel: each element is one chain of multiply-adds in the order of k, so its bits are the same
// however rows and columns are shared out, and on every device.
#pragma once

#include <cstdint>

#include "host/simd.h"

namespace naru::host {

template <class T>
struct OwnMatMul {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_col;  // strides in elements
  const T* b;
  int64_t b_row, b_col;
  T* c;
  int64_t c_row;     // columns are neighbours
  bool add = false;  // the chains go on from what c holds; else from 0
};

// y[i] = the chain of x[at[t] + i] * weights[t] over the taps t, from 0, plus the bias where there is one. Up to kTapsBehind elements behind the n that
// a tap reads are read, too.
struct Taps {
  int64_t n, taps;
  const float* x;
  const int64_t* at;
  const float *weights, *bias;
  float* y;
};
constexpr int64_t kTapsBehind = 64;

// The same function for each kind of processors. float and double: fused multiply-add; int32_t and int64_t wrap.
#define NARU_OWN_PRODUCT(set)                 \
  namespace set {                             \
  void own_matmul(const OwnMatMul<float>&);   \
  void own_matmul(const OwnMatMul<double>&);  \
  void own_matmul(const OwnMatMul<int32_t>&); \
  void own_matmul(const OwnMatMul<int64_t>&); \
  void own_taps(const Taps&);                 \
  }
NARU_OWN_PRODUCT(plain)
#if defined(__x86_64__)
NARU_OWN_PRODUCT(avx2)
NARU_OWN_PRODUCT(avx512)
namespace avx512 {
// y[i * incy] = the product of row i of `rows` (its k numbers are neighbours) and x, for `count` rows `ld` apart. Each sum is that of the row alone.
void dots(int64_t count, int64_t k, const float* rows, int64_t ld, const float* x, float* y, int64_t incy);
}  // namespace avx512
#elif defined(__aarch64__)
NARU_OWN_PRODUCT(neon)
#endif
#undef NARU_OWN_PRODUCT

// By the processor's own.
template <class T>
void own_product(const OwnMatMul<T>& q) {
#if defined(__x86_64__)
  const int level = wide_level();
  if (level == 2) return avx512::own_matmul(q);
  if (level == 1) return avx2::own_matmul(q);
  plain::own_matmul(q);
#elif defined(__aarch64__)
  neon::own_matmul(q);
#else
  plain::own_matmul(q);
#endif
}
inline auto own_taps_function() noexcept {
#if defined(__x86_64__)
  const int level = wide_level();
  return level == 2 ? avx512::own_taps : level == 1 ? avx2::own_taps : plain::own_taps;
#elif defined(__aarch64__)
  return neon::own_taps;
#else
  return plain::own_taps;
#endif
}

}  // namespace naru::host
