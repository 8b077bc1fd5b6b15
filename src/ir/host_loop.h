// Operators that the cpu computes in one loop, where devices need several instructions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru::ir {

// One loop over host memory. It gives the same bits as the operator gives on other devices. Arrays are row-major, in this order:
//   Gcd             x, y, out
//   Places          sorted (along the last dimension), values, out: searchsorted, the number of elements before each value. numbers: 1 counts
//                   equal ones
//   Modes           sorted rows, their order, out values, out indices (one for each row)
//   ScatterExtreme  index, source, out, which receives the maximum or minimum. numbers: dimension, greatest, 1 for
//                   include_self (out's initial values count) + 2 for index_reduce_
//   GridSample      x (N, C, H, W), grid (N, h, w, 2), out (N, C, h, w). numbers: nearest (0) or bilinear, zeros (0) or border, align_corners
//   Distances       x (N, D), out: the Euclidean distances of all pairs of rows; or x, y (M, D), out (N, M): from each row of x to each row of y
//   BagSums         index (B, L), weight (V, D), out (B, D). numbers: the divisor of the sums
//   RunningExtreme  rows, out values, out indices. numbers: 1 for the maximum
//   Triangle        matrices, out. numbers: diagonal, 1 for the lower triangle
//   Margins         x (N, C), target (N), out (N): sum over the other classes of max(0, margin - x[target] + x)^p. numbers: p, margin's bits
//                   (F64)
//   LabelMargins    x (N, C), target (N, C), out (N): sum of max(0, 1 - x[label] + x[c]) over labels (the targets before the first negative one)
//                   and classes c that are not labels
//   Softmax         rows, out. numbers: elements per row, 1 for the logarithm
//   NormRows        rows, weight and bias (of a row; no data: none), out, means (no data: nothing is subtracted), reciprocal roots, one bool, set to
//                   true if a row is hard (ops/nn/layer_norm.cpp). numbers: elements per row; bits (F64) of eps, of the least variance, and of the
//                   share of the mean that the root of the variance must reach (0: no row is hard)
//   CtcForward      emitted (T, N, L), skips (N, L), out (T + 1, N, L + 2), which holds the state before the first step (ops/loss/ctc_loss.cpp)
//   Recurrent       the steps of a recurrent layer: ops/nn/recurrent_sequence.h has its arrays and numbers
//   RecurrentGradient  the same, backward
//   Pad             x, out: x somewhere inside out, a constant elsewhere. numbers: offset of x in out, in elements; the constant's bits
//   Histogram       x, out (I64): how many numbers each bin has. numbers: bits (F64) of the lower and the upper bound, and of bins per unit
struct HostLoop {
  enum class Kind : uint8_t {
    Gcd,
    Places,
    Modes,
    ScatterExtreme,
    GridSample,
    Distances,
    BagSums,
    RunningExtreme,
    Triangle,
    Margins,
    LabelMargins,
    Softmax,
    NormRows,
    CtcForward,
    Pad,
    Recurrent,
    RecurrentGradient,
    Histogram
  };
  struct Array {
    void* data = nullptr;
    DType dtype = DType::F32;
    Dims sizes;
    int64_t numel() const { return product(sizes); }
    template <class T>
    T* as() const {
      return static_cast<T*>(data);
    }
  };
  Kind kind = Kind::Gcd;
  std::vector<Array> arrays;
  std::array<int64_t, 4> numbers{};
};

}  // namespace naru::ir
