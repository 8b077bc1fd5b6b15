// Pointwise convolutions (kernel and stride 1, no padding) are products: the channels of an image as a matrix, times the weights; gradients of the
// weights are products of two such matrices, summed over the positions of all images. A library reads them as they lie, so nothing is copied.
#include <algorithm>
#include <vector>

#include "backends/cpu/conv/columns.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/libraries/matmul_libraries.h"

namespace naru::cpu {
namespace {

using ir::Convolution;

// The channels of an image as a matrix (channels, positions) in memory: row-major, or its transpose.
struct Channels {
  const float* data = nullptr;
  int64_t image = 0, leading = 0;
  bool transposed = false, usable = false;
};
Channels channels_of(const Convolution::Array& a, const Convolution::Sizes& size) {
  const auto& s = a.strides;
  int64_t step = 0, expected = 0;
  for (size_t d = 3; d-- > 0;) {
    if (size[d] == 1) continue;
    if (step == 0) step = expected = s[d + 2];
    if (s[d + 2] != expected) return {};
    expected *= size[d];
  }
  if (step == 0) step = 1;
  const auto* data = static_cast<const float*>(a.data);
  if (step == 1 && s[1] > 0) return {data, s[0], s[1], false, true};
  if (s[1] == 1 && step > 0) return {data, s[0], step, true, true};
  return {};
}

// The result, or the gradient of the input, of images whose channels are rows: a product for each image and block of rows. The library of convolutions
// would copy both to its blocks; it is quicker where images have so few positions that the product is mostly the weights.
bool images(const Convolution& q, const Channels& x, const Channels& y, int64_t positions) {
  constexpr int64_t kLeastPositions = 512, kRows = 64;
  const auto gemm = products().big_sgemm ? products().big_sgemm : products().small_sgemm;
  const auto& s = q.w.strides;
  const bool forward = q.use == Convolution::Use::Forward;
  const bool by_rows = s[1] == 1 && s[0] >= q.in, by_columns = s[0] == 1 && s[1] >= q.out;
  if (x.transposed || y.transposed || positions < kLeastPositions || !gemm || !(by_rows || by_columns)) return false;
  const Channels &from = forward ? x : y, &to = forward ? y : x;
  const int64_t rows = forward ? q.out : q.in, depth = forward ? q.in : q.out, blocks = (rows + kRows - 1) / kRows;
  const auto* const weights = static_cast<const float*>(q.w.data);
  const auto* const bias = static_cast<const float*>(q.bias);
  const double time = 0.02 * static_cast<double>(rows * depth) * static_cast<double>(q.batch * positions);
  parallel_for(
      q.batch * blocks,
      [&](int64_t part) {
        const int64_t image = part / blocks, row = part % blocks * kRows, count = std::min(kRows, rows - row);
        float* const result = const_cast<float*>(to.data) + image * to.image + row * to.leading;
        for (int64_t r = 0; bias && r < count; ++r) std::fill_n(result + r * to.leading, positions, bias[(row + r) * q.bias_stride]);
        // The weights are (rows, depth) as they are forward, turned backward.
        gemm(forward != by_rows, false, count, positions, depth, weights + row * s[forward ? 0 : 1], by_rows ? s[0] : s[1],
             from.data + image * from.image, from.leading, bias ? 1.0f : 0.0f, result, to.leading);
      },
      time);
  return true;
}

}  // namespace

bool pointwise(const Convolution& q) {
  const auto all = [](const Convolution::Sizes& s, int64_t v) { return std::ranges::all_of(s, [v](int64_t n) { return n == v; }); };
  if (q.dtype != DType::F32 || q.precision.deterministic || q.groups != 1 || !all(q.kernel, 1) || !all(q.stride, 1) || !all(q.padding, 0) ||
      q.size != q.result)
    return false;
  const Channels x = channels_of(q.x, q.size), y = channels_of(q.y, q.size);
  const int64_t positions = q.size[0] * q.size[1] * q.size[2];
  // The library's rows must not overlap.
  const auto fits = [&](const Channels& c, int64_t channels) { return c.usable && c.leading >= (c.transposed ? channels : positions); };
  if (!fits(x, q.in) || !fits(y, q.out) || q.batch * positions == 0) return false;
  if (q.use != Convolution::Use::Weight) return images(q, x, y, positions);
  // Channels last, without gaps between images, are one matrix. Otherwise a product an image has to be worth the call.
  const auto joined = [&](const Channels& c) { return c.transposed && c.image == positions * c.leading; };
  const bool together = joined(x) && joined(y);
  constexpr int64_t kLeastPositions = 256;
  if (!together && positions < kLeastPositions) return false;
  // oneDNN packs a transposed left operand faster, OpenBLAS rows.
  const Products& library = products();
  const auto gemm = library.big_sgemm && (together || !library.small_sgemm) ? library.big_sgemm : library.small_sgemm;
  if (!gemm) return false;
  // Few weights are a small product over many positions: shares of the images are summed apart, then in order. By sizes alone, as the bits depend on it.
  constexpr int64_t kRows = 64, kManyWeights = 1 << 14, kPositions = 1 << 13, kMostShares = 8;
  const int64_t weights = q.out * q.in, row_blocks = (q.out + kRows - 1) / kRows;
  const int64_t wanted = weights >= kManyWeights ? 1 : std::clamp<int64_t>(q.batch * positions / kPositions, 1, kMostShares);
  const int64_t images = (q.batch + wanted - 1) / wanted, shares = (q.batch + images - 1) / images;
  std::vector<float> sums(static_cast<size_t>(shares * weights));
  const double time = 0.02 * static_cast<double>(weights) * static_cast<double>(q.batch * positions);
  parallel_for(
      shares * row_blocks,
      [&](int64_t part) {
        const int64_t share = part / row_blocks, row = part % row_blocks * kRows, rows = std::min(kRows, q.out - row);
        float* const to = sums.data() + share * weights + row * q.in;
        const int64_t first = share * images, end = std::min(first + images, q.batch);
        const int64_t at_once = together ? end - first : 1;
        for (int64_t i = first; i < end; i += at_once)
          gemm(y.transposed, !x.transposed, rows, q.in, positions * at_once, y.data + i * y.image + row * (y.transposed ? 1 : y.leading),
               y.leading, x.data + i * x.image, x.leading, i == first ? 0.0f : 1.0f, to, q.in);
      },
      time);
  for (int64_t o = 0; o < q.out; ++o)
    for (int64_t i = 0; i < q.in; ++i) {
      float sum = sums[static_cast<size_t>(o * q.in + i)];
      for (int64_t share = 1; share < shares; ++share) sum += sums[static_cast<size_t>(share * weights + o * q.in + i)];
      static_cast<float*>(q.w.data)[o * q.w.strides[0] + i * q.w.strides[1]] = sum;
    }
  return true;
}

}  // namespace naru::cpu
