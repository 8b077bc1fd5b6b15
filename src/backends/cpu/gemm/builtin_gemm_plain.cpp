// builtin_gemm.h for any processor. Without a hardware fused multiply-add it calls the C library's: slow, but with the same bits.
#include "backends/cpu/gemm/builtin_gemm.h"

#include <cstring>

#include "backends/cpu/exec/transpose.h"

#include <cmath>

namespace naru::cpu::plain {
namespace {

constexpr int kVectorBytes = 16, kTileRows = 4;

typedef float Floats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline Floats fused(float a, Floats b, Floats c) {
  for (int i = 0; i < 4; ++i) c[i] = std::fma(a, b[i], c[i]);
  return c;
}
inline Doubles fused(double a, Doubles b, Doubles c) {
  for (int i = 0; i < 2; ++i) c[i] = std::fma(a, b[i], c[i]);
  return c;
}

}  // namespace

#include "backends/cpu/gemm/builtin_gemm.inc"

}  // namespace naru::cpu::plain
