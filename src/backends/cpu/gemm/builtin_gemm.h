// naru's own matrix product. Each element is one chain of multiply-adds in the order of k, so its bits do not depend on how rows and
// columns are split, nor on the device.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/transpose.h"

namespace naru::cpu {

template <class T>
struct OwnMatMul {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_col;  // strides in elements
  const T* b;
  int64_t b_row, b_col;
  T* c;
  int64_t c_row;     // the column stride is 1
  bool add = false;  // continue the chains from the values in c; else start from 0
};

// c = a b, for a packed `b` that many products use: panels of kPanelColumns columns, `panel` elements apart, each of k consecutive rows, 64-byte
// aligned. n is a multiple of kPanelColumns; a and c have unit column strides. Chains begin from 0, or with `add` from the values in c.
constexpr int64_t kPanelColumns = 32;
constexpr int64_t whole_panels(int64_t n) { return (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns; }
template <class T>
struct PanelProduct {
  int64_t m, n, k;
  const T* a;
  int64_t a_row;
  const T* b;
  T* c;
  int64_t c_row;
  int64_t panel = kPanelColumns * k;
  bool add = false;
};
// Packs a matrix of `depth` rows and `cols` columns into one panel (cols <= kPanelColumns); missing columns are 0.
template <class T>
void pack_panel(const T* b, int64_t b_row, int64_t b_col, int64_t depth, int64_t cols, T* to) {
  constexpr int64_t kItem = sizeof(T);
  if (cols < kPanelColumns) std::memset(to, 0, static_cast<size_t>(depth * kPanelColumns) * sizeof(T));
  if (b_row == 1)
    return transpose(reinterpret_cast<const char*>(b), b_col * kItem, kItem, depth, cols, reinterpret_cast<char*>(to),
                     kPanelColumns * kItem);
  for (int64_t d = 0; d < depth; ++d) std::memcpy(to + d * kPanelColumns, b + d * b_row, static_cast<size_t>(cols) * sizeof(T));
}

// y[i] = the chain of x[at[t] + i] * weights[t] over the taps t, starting from 0, plus the bias if there is one. Reads up to kTapsBehind
// elements past the n of each tap.
struct Taps {
  int64_t n, taps;
  const float* x;
  const int64_t* at;
  const float *weights, *bias;
  float* y;
};
constexpr int64_t kTapsBehind = 64;

// The same functions for each instruction set. float and double use fused multiply-add; int32_t and int64_t wrap.
#define NARU_OWN_PRODUCT(set)                      \
  namespace set {                                  \
  void builtin_gemm(const OwnMatMul<float>&);      \
  void builtin_gemm(const OwnMatMul<double>&);     \
  void builtin_gemm(const OwnMatMul<int32_t>&);    \
  void builtin_gemm(const OwnMatMul<int64_t>&);    \
  void panel_product(const PanelProduct<float>&);  \
  void panel_product(const PanelProduct<double>&); \
  void own_taps(const Taps&);                      \
  }
NARU_OWN_PRODUCT(plain)
#if defined(__x86_64__)
NARU_OWN_PRODUCT(avx2)
NARU_OWN_PRODUCT(avx512)
namespace avx512 {
// y[i * incy] = dot(row i of `rows`, x) for `count` rows that are `ld` apart; the k elements of a row are contiguous. The bits of a sum do
// not depend on `count`.
void dots(int64_t count, int64_t k, const float* rows, int64_t ld, const float* x, float* y, int64_t incy);
}  // namespace avx512
#elif defined(__aarch64__)
NARU_OWN_PRODUCT(neon)
#endif
#undef NARU_OWN_PRODUCT

// Dispatches to this processor's instruction set.
template <class T>
void own_product(const OwnMatMul<T>& q) {
#if defined(__x86_64__)
  const int level = wide_level();
  if (level == 2) return avx512::builtin_gemm(q);
  if (level == 1) return avx2::builtin_gemm(q);
  plain::builtin_gemm(q);
#elif defined(__aarch64__)
  neon::builtin_gemm(q);
#else
  plain::builtin_gemm(q);
#endif
}
template <class T>
void own_panel_product(const PanelProduct<T>& q) {
#if defined(__x86_64__)
  const int level = wide_level();
  if (level == 2) return avx512::panel_product(q);
  if (level == 1) return avx2::panel_product(q);
  plain::panel_product(q);
#elif defined(__aarch64__)
  neon::panel_product(q);
#else
  plain::panel_product(q);
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

}  // namespace naru::cpu
