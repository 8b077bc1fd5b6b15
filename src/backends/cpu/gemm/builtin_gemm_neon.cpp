// builtin_gemm.h for aarch64, where all processors have NEON with fused multiply-add.
#include "backends/cpu/gemm/builtin_gemm.h"

#include <cstring>

#include "backends/cpu/exec/transpose.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace naru::cpu::neon {
namespace {

constexpr int kVectorBytes = 16, kTileRows = 12;  // 24 of 32 registers hold sums

typedef float Floats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline Floats fused(float a, Floats b, Floats c) { return vfmaq_n_f32(c, b, a); }
inline Doubles fused(double a, Doubles b, Doubles c) { return vfmaq_n_f64(c, b, a); }

}  // namespace

#include "backends/cpu/gemm/builtin_gemm.inc"

}  // namespace naru::cpu::neon

#endif
