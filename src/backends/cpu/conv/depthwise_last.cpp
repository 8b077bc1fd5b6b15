// Depthwise convolutions of images that lie channels last: channels side by side, each result a chain over the taps within the image, then the bias.
#include <algorithm>
#include <vector>

#include "backends/cpu/conv/columns.h"
#include "backends/cpu/exec/lanes.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"

namespace naru::cpu {
namespace {

using ir::Convolution;

// Results of one row: position t reads, for each row of taps that is in the image, element t * step + offset[k] of its source row.
struct LastRow {
  struct Taps {
    const float *source, *weights;  // the row's first element; the weights of its taps, all channels of one after those of another
  };
  std::span<const Taps> rows;
  std::span<const int64_t> offsets;
  int64_t count, step, size;             // positions; elements between them and of a source row
  int64_t inner, inner_end;              // the positions all of whose taps are in the row
  int64_t channels, from_step, to_step;  // floats between neighbouring elements
  const float* bias;                     // of the channels; or null
  float* to;
};

// kPositions positions from t on, 16 channels from c on; all taps are in the row.
template <int kPositions>
[[gnu::always_inline]] inline void inner_results(const LastRow& r, int64_t t, int64_t c) {
  Floats sums[kPositions] = {};
  for (const LastRow::Taps& taps : r.rows) {
    const float* w = taps.weights + c;
    for (const int64_t offset : r.offsets) {
      const Floats weight = *reinterpret_cast<const Floats*>(w);
      const float* x = taps.source + (t * r.step + offset) * r.from_step + c;
      for (int p = 0; p < kPositions; ++p, x += r.step * r.from_step) {
        Floats product = weight;
        multiply_add(product, *reinterpret_cast<const Floats*>(x), sums[p]);
        sums[p] = product;
      }
      w += r.channels;
    }
  }
  for (int p = 0; p < kPositions; ++p) {
    if (r.bias) sums[p] += *reinterpret_cast<const Floats*>(r.bias + c);
    *reinterpret_cast<Floats*>(r.to + (t + p) * r.to_step + c) = sums[p];
  }
}

// One position, channels [c, end); taps may be outside of the row.
[[gnu::always_inline]] inline void edge_results(const LastRow& r, int64_t t, int64_t c, int64_t end) {
  float* const to = r.to + t * r.to_step;
  for (; c < end; c += kLanes) {
    const int64_t n = std::min(kLanes, end - c);
    float sums[kLanes] = {};
    for (const LastRow::Taps& taps : r.rows)
      for (size_t k = 0; k < r.offsets.size(); ++k) {
        const int64_t at = t * r.step + r.offsets[k];
        if (at < 0 || at >= r.size) continue;
        const float *const x = taps.source + at * r.from_step + c, *const w = taps.weights + static_cast<int64_t>(k) * r.channels + c;
        for (int64_t i = 0; i < n; ++i) sums[i] = __builtin_fmaf(x[i], w[i], sums[i]);
      }
    for (int64_t i = 0; i < n; ++i) to[c + i] = r.bias ? sums[i] + r.bias[c + i] : sums[i];
  }
}

NARU_WIDE void row_results(const LastRow& r) {
  constexpr int kTogether = 4;
  const int64_t whole = r.channels / kLanes * kLanes;
  for (int64_t t = 0; t < r.count;) {
    if (t < r.inner || t >= r.inner_end) {
      edge_results(r, t++, 0, r.channels);
    } else if (t + kTogether <= r.inner_end) {
      for (int64_t c = 0; c < whole; c += kLanes) inner_results<kTogether>(r, t, c);
      for (const int64_t end = t + kTogether; t < end; ++t) edge_results(r, t, whole, r.channels);
    } else {
      for (int64_t c = 0; c < whole; c += kLanes) inner_results<1>(r, t, c);
      edge_results(r, t++, whole, r.channels);
    }
  }
}

class DepthwiseLast {
 public:
  DepthwiseLast(const Convolution& q, const Phase& p)
      : q_(q), p_(p), forward_(q.use == Convolution::Use::Forward), from_(forward_ ? q.x : q.y), to_(forward_ ? q.y : q.x) {
    const auto& s = q.w.strides;
    weights_.reserve(static_cast<size_t>(p.taps * q.groups));
    for (const int64_t i : p.axis[0].place)
      for (const int64_t j : p.axis[1].place)
        for (const int64_t k : p.axis[2].place)
          for (int64_t c = 0; c < q.groups; ++c)
            weights_.push_back(static_cast<const float*>(q.w.data)[c * s[0] + i * s[2] + j * s[3] + k * s[4]]);
    if (!q.bias) return;
    for (int64_t c = 0; c < q.groups; ++c) bias_.push_back(static_cast<const float*>(q.bias)[c * q.bias_stride]);
  }

  void run() const {
    const Axis &d = p_.axis[0], &h = p_.axis[1];
    const int64_t rows = d.count * h.count;
    const double time = 0.03 * static_cast<double>(q_.batch * q_.groups * p_.positions * p_.taps);
    split(q_.batch * rows, time, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(i / rows, i % rows / h.count, i % h.count);
    });
  }

 private:
  void row(int64_t image, int64_t td, int64_t th) const {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    LastRow r{};
    std::vector<LastRow::Taps> taps;
    const float* const source = static_cast<const float*>(from_.data) + image * from_.strides[0];
    for (int64_t i = 0; i < d.taps(); ++i)
      for (int64_t j = 0; j < h.taps(); ++j) {
        const int64_t id = td * d.step + d.offset[static_cast<size_t>(i)], ih = th * h.step + h.offset[static_cast<size_t>(j)];
        if (id < 0 || id >= d.size || ih < 0 || ih >= h.size) continue;
        taps.push_back(
            {source + id * from_.strides[2] + ih * from_.strides[3], weights_.data() + (i * h.taps() + j) * w.taps() * q_.groups});
      }
    r.rows = taps, r.offsets = w.offset;
    r.count = w.count, r.step = w.step, r.size = w.size;
    r.inner_end = w.count;
    if (!w.offset.empty()) {
      const auto [least, most] = std::minmax_element(w.offset.begin(), w.offset.end());
      if (*least < 0) r.inner = std::min((-*least + w.step - 1) / w.step, w.count);
      r.inner_end = w.size <= *most ? r.inner : std::clamp((w.size - 1 - *most) / w.step + 1, r.inner, w.count);
    }
    r.channels = q_.groups, r.from_step = from_.strides[4], r.to_step = w.stride * to_.strides[4];
    r.bias = bias_.empty() ? nullptr : bias_.data();
    r.to = static_cast<float*>(to_.data) + image * to_.strides[0] + (d.first + td * d.stride) * to_.strides[2] +
           (h.first + th * h.stride) * to_.strides[3] + w.first * to_.strides[4];
    row_results(r);
  }

  const Convolution& q_;
  const Phase& p_;
  const bool forward_;
  const Convolution::Array &from_, &to_;
  std::vector<float> weights_, bias_;  // (taps, channels)
};

}  // namespace

bool depthwise_last(const Convolution& q) {
  if (q.dtype != DType::F32 || q.use == Convolution::Use::Weight || q.groups < kLanes || q.in != 1 || q.out != 1) return false;
  if (q.x.strides[1] != 1 || q.y.strides[1] != 1) return false;
  for (const Phase& p : phases_of(q)) {
    if (p.positions == 0) continue;
    DepthwiseLast(q, p).run();
  }
  return true;
}

}  // namespace naru::cpu
