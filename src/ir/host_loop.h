// What the cpu does at once in one loop, where devices take several instructions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru::ir {

// One loop over host memory: the same values, with the same bits, as what its operator is elsewhere. Arrays lie row-major, in this order:
//   Gcd             x, y, out
//   Places          sorted (of the last dimension), values, out: how many elements are before each value. numbers: whether equal ones are
//   Modes           sorted rows, their order, out values, out indices (one for each row)
//   ScatterExtreme  index, source, out, which takes the greatest or least. numbers: dimension, greatest, whether what out holds counts
//   GridSample      x (N, C, H, W), grid (N, h, w, 2), out (N, C, h, w). numbers: nearest (0) or bilinear, zeros (0) or border, align_corners
//   Distances       x (N, D), out: the Euclidean ones of all pairs of rows; or x, y (M, D), out (N, M): of each row of both
//   BagSums         index (B, L), weight (V, D), out (B, D). numbers: what sums are divided by
//   RunningExtreme  rows, out values, out places. numbers: whether the greatest
//   Triangle        matrices, out. numbers: diagonal, whether the lower
//   Margins         x (N, C), target (N), out (N): the sums over the other classes of max(0, margin - x[target] + x)^p. numbers: p, margin's bits (F64)
//   LabelMargins    x (N, C), target (N, C), out (N): the sums of max(0, 1 - x[label] + x) over labels up to a negative one, and what is no label
//   Softmax         rows, out. numbers: elements of a row, whether the logarithm
//   CtcForward      emitted (T, N, L), skips (N, L), out (T + 1, N, L + 2), which holds the state before the first step (ops/ctc_loss.cpp)
//   Pad             x, out, which has x somewhere and one value elsewhere. numbers: where x begins in out, in elements, and the value's bits
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
    CtcForward,
    Pad
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
  std::array<int64_t, 3> numbers{};
};

}  // namespace naru::ir
