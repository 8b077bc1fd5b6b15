// own_matmul.h for aarch64, whose every processor has NEON and its fused multiply-add.
#include "host/own_matmul.h"

#include <cstring>

#include "host/transpose.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace naru::host::neon {
namespace {

constexpr int kVectorBytes = 16, kTileRows = 12;  // 24 of 32 registers hold sums

typedef float Floats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline Floats fused(float a, Floats b, Floats c) { return vfmaq_n_f32(c, b, a); }
inline Doubles fused(double a, Doubles b, Doubles c) { return vfmaq_n_f64(c, b, a); }

}  // namespace

#include "host/own_matmul.inc"

}  // namespace naru::host::neon

#endif
