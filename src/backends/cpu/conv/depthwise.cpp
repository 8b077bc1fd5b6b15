// Depthwise convolutions: copies a channel with zero padding, then computes each row of results as chains over the taps.
#include <algorithm>

#include "backends/cpu/conv/columns.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/gemm/builtin_gemm.h"

namespace naru::cpu {
namespace {

using ir::Convolution;

// With more result channels per group, or more taps, im2col and a product are faster.
constexpr int64_t kMostTargets = 2, kMostTaps = 256;

// One dimension of the padded copy: `count` elements, starting at source element `least`, which may be in the padding.
struct Extent {
  int64_t least = 0, count = 0;
  int64_t begin = 0, end = 0;  // the range of elements that exist in the source
};
Extent extent_of(const Axis& a) {
  const auto [low, high] = std::minmax_element(a.offset.begin(), a.offset.end());
  Extent e;
  e.least = *low, e.count = (a.count - 1) * a.step + *high - *low + 1;
  e.begin = std::clamp<int64_t>(e.least, 0, a.size), e.end = std::clamp<int64_t>(e.least + e.count, e.begin, a.size);
  return e;
}

class Depthwise {
 public:
  // Rows of the innermost dimension are copied so that elements `step` apart, which neighbouring results read, become contiguous.
  Depthwise(const Convolution& q, const Phase& p)
      : q_(q), p_(p), forward_(q.use == Convolution::Use::Forward), from_(forward_ ? q.x : q.y), to_(forward_ ? q.y : q.x) {
    for (size_t d = 0; d < 3; ++d) extent_[d] = extent_of(p.axis[d]);
    const Axis &a = p.axis[0], &b = p.axis[1], &c = p.axis[2];
    part_ = (extent_[2].count + c.step - 1) / c.step + kTapsBehind;
    pitch_ = part_ * c.step;
    for (const int64_t i : a.offset)
      for (const int64_t j : b.offset)
        for (const int64_t k : c.offset) {
          const int64_t column = k - extent_[2].least;
          at_.push_back(((i - extent_[0].least) * extent_[1].count + j - extent_[1].least) * pitch_ + column % c.step * part_ +
                        column / c.step);
        }
  }
  // Number of elements of the copy, and the same as double, which can't overflow.
  int64_t elements() const { return extent_[0].count * extent_[1].count * pitch_; }
  double room() const {
    return static_cast<double>(extent_[0].count) * static_cast<double>(extent_[1].count) * static_cast<double>(pitch_);
  }

  void run() const {
    const int64_t channels = q_.batch * q_.groups, targets = forward_ ? q_.out : q_.in;
    const double time = 0.05 * static_cast<double>(channels * (elements() + targets * p_.positions * p_.taps / 4));
    split(channels, time, 1, [&](int64_t begin, int64_t end) {
      float* const copy = reinterpret_cast<float*>(scratch(static_cast<size_t>(elements()) * sizeof(float)));
      std::fill_n(copy, elements(), 0.0f);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / q_.groups, group = i % q_.groups;
        fill(static_cast<const float*>(from_.data) + image * from_.strides[0] + group * from_.strides[1], copy);
        for (int64_t m = 0; m < targets; ++m) results(copy, image, group * targets + m, group, m);
      }
    });
  }

 private:
  void fill(const float* source, float* copy) const {
    const auto& [a, b, c] = extent_;
    const int64_t step = p_.axis[2].step, n = c.end - c.begin, first = c.begin - c.least;
    for (int64_t i = a.begin; i < a.end; ++i)
      for (int64_t j = b.begin; j < b.end; ++j) {
        const float* const from = source + i * from_.strides[2] + j * from_.strides[3] + c.begin;
        float* const to = copy + ((i - a.least) * b.count + j - b.least) * pitch_;
        if (step == 1)
          std::copy_n(from, n, to + first);
        else
          for (int64_t k = 0; k < n; ++k) to[(first + k) % step * part_ + (first + k) / step] = from[k];
      }
  }

  void results(const float* copy, int64_t image, int64_t channel, int64_t group, int64_t m) const {
    float weights[kMostTaps];
    const auto& s = q_.w.strides;
    const float* w = static_cast<const float*>(q_.w.data) + (forward_ ? channel * s[0] : group * s[0] + m * s[1]);
    int64_t t = 0;
    for (const int64_t i : p_.axis[0].place)
      for (const int64_t j : p_.axis[1].place)
        for (const int64_t k : p_.axis[2].place) weights[t++] = w[i * s[2] + j * s[3] + k * s[4]];
    const auto [depth, rows, n] = std::array{p_.axis[0].count, p_.axis[1].count, p_.axis[2].count};
    Taps taps{n, p_.taps, nullptr, at_.data(), weights, nullptr, nullptr};
    if (q_.bias) taps.bias = static_cast<const float*>(q_.bias) + channel * q_.bias_stride;
    float* const to = static_cast<float*>(to_.data) + image * to_.strides[0] + channel * to_.strides[1];
    const auto row = own_taps_function();
    for (int64_t i = 0; i < depth; ++i)
      for (int64_t j = 0; j < rows; ++j) {
        taps.x = copy + (i * p_.axis[0].step * extent_[1].count + j * p_.axis[1].step) * pitch_;
        taps.y = to + i * to_.strides[2] + j * to_.strides[3];
        row(taps);
      }
  }

  const Convolution& q_;
  const Phase& p_;
  const bool forward_;
  const Convolution::Array &from_, &to_;
  std::array<Extent, 3> extent_;
  int64_t part_, pitch_;     // of a row of the copy: length of each of the `step` parts; total length
  std::vector<int64_t> at_;  // offsets of the taps of a row's first result
};

}  // namespace

bool depthwise(const Convolution& q) {
  const bool forward = q.use == Convolution::Use::Forward;
  if (q.dtype != DType::F32 || q.use == Convolution::Use::Weight || (forward ? q.in : q.out) != 1 ||
      (forward ? q.out : q.in) > kMostTargets)
    return false;
  const auto &from = forward ? q.x : q.y, &to = forward ? q.y : q.x;
  const auto &source = forward ? q.size : q.result, &target = forward ? q.result : q.size;
  if ((from.strides[4] != 1 && source[2] != 1) || (to.strides[4] != 1 && target[2] != 1)) return false;
  const std::vector<Phase> phases = phases_of(q);
  if (phases.size() != 1 || phases[0].positions == 0 || phases[0].taps == 0 || phases[0].taps > kMostTaps) return false;
  const Depthwise work(q, phases[0]);
  // Large dilation or padding would make the copy much larger than the source.
  if (work.room() > 16.0 * static_cast<double>(source[0] * source[1] * source[2] + phases[0].positions) + (1 << 16)) return false;
  work.run();
  return true;
}

}  // namespace naru::cpu
