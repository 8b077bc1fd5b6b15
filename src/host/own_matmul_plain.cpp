// own_matmul.h for any processor. Without a fused multiply-add of its own the library's is called: slow, with the same
// bits.
#include "host/own_matmul.h"

#include <cstring>

#include "host/transpose.h"

#include <cmath>

namespace naru::host::plain {
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

#include "host/own_matmul.inc"

}  // namespace naru::host::plain
