// Convolutions, by oneDNN where that is quicker (onednn_convolution.h), else by naru's own product kernel: the windows of a block of positions become
// columns, which a product with the weights turns into results. Each element is one chain of fma then, in the order that ir::Convolution names, so its
// bits do not depend on blocks or threads.
#include <algorithm>
#include <cmath>

#include "host/buffer.h"
#include "host/columns.h"
#include "host/instructions.h"
#include "host/kernels.h"
#include "host/layout.h"
#include "host/onednn_convolution.h"
#include "host/own_matmul.h"
#include "host/product_types.h"
#include "host/simd.h"
#include "naru/error.h"

namespace naru::host {
namespace {

using ir::Convolution;
using Use = Convolution::Use;

// Up to so many channels of a group of the result are computed without a product.
constexpr int64_t kFew = 2;
// Elements of a block of columns, which is to stay in the second cache, and of its rows.
constexpr int64_t kBlock = 1 << 16, kLeast = 32, kMost = 1024;
// Nanoseconds of a multiply-add, roughly.
constexpr double kTime = 0.02;

// y[i] = fma(x[i * move], w, y[i])
NARU_WIDE void multiply_add(const float* x, int64_t move, float w, int64_t n, float* y) {
  if (move == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = __builtin_fmaf(x[i], w, y[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = __builtin_fmaf(x[i * move], w, y[i]);
}
// The sum of x[i * move] * y[i], in 16 parts.
NARU_WIDE float dot(const float* x, int64_t move, const float* y, int64_t n) {
  float parts[16] = {};
  int64_t i = 0;
  if (move == 1) {
    for (; i + 16 <= n; i += 16)
      for (int64_t l = 0; l < 16; ++l) parts[l] = __builtin_fmaf(x[i + l], y[i + l], parts[l]);
  }
  for (; i < n; ++i) parts[i % 16] = __builtin_fmaf(x[i * move], y[i], parts[i % 16]);
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Positions of a block whose columns have `depth` elements each: as many as fit, the blocks of nearly one size.
int64_t block_of(int64_t positions, int64_t depth) {
  const int64_t most = std::clamp(kBlock / std::max<int64_t>(depth, 1), kLeast, kMost);
  const int64_t blocks = (positions + most - 1) / most;
  return round_up((positions + blocks - 1) / blocks, kLeast);
}

// Do positions of the spatial dimensions follow each other in memory?
bool runs_on(const std::array<int64_t, 5>& strides, const Convolution::Sizes& sizes) {
  int64_t next = 1;
  for (size_t d = 3; d-- > 0;) {
    if (sizes[d] != 1 && strides[d + 2] != next) return false;
    next *= sizes[d];
  }
  return true;
}

template <class T>
void add_bias(T* row, int64_t n, T bias) {
  for (int64_t i = 0; i < n; ++i) row[i] = plus(row[i], bias);
}

// Whether a zero from the padding changes nothing when it is multiplied.
bool all_finite(const float* w, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(w[i])) return false;
  return true;
}

// y of x and w, or x of y and w: `target` channels, each of `source` channels.
template <class T>
class Results {
 public:
  explicit Results(const Convolution& q)
      : q_(q),
        forward_(q.use == Use::Forward),
        phases_(phases_of(q)),
        from_(forward_ ? q.x : q.y),
        to_(forward_ ? q.y : q.x),
        source_(forward_ ? q.in : q.out),
        target_(forward_ ? q.out : q.in) {
    direct_ = phases_.size() == 1 && runs_on(to_.strides, forward_ ? q.result : q.size);
    pack_weights();
    for (const Phase& p : phases_) {
      block_.push_back(block_of(p.positions, source_ * p.taps));
      units_.push_back((p.positions + block_.back() - 1) / block_.back());
    }
  }

  void run() const {
    int64_t each = 0;
    for (const int64_t n : units_) each += n;
    const int64_t pairs = q_.batch * q_.groups;
    const double time =
        kTime * static_cast<double>(product(q_.sizes_of_w())) * static_cast<double>(q_.batch) * static_cast<double>(product(q_.result));
    split(pairs * each, time, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t block = i % each;
        size_t phase = 0;
        while (block >= units_[phase]) block -= units_[phase++];
        part(phases_[phase], i / each / q_.groups, i / each % q_.groups, block * block_[phase], block_[phase]);
      }
    });
  }

 private:
  // A matrix for each group and phase: target channels by source channels and taps.
  void pack_weights() {
    const std::array<int64_t, 5> sizes = q_.sizes_of_w();
    bool plain = true;
    for (int64_t d = 5, next = 1; d-- > 0;) {
      const auto i = static_cast<size_t>(d);
      plain &= sizes[i] == 1 || q_.w.strides[i] == next;  // dimensions that are not there have stride 0
      next *= sizes[i];
    }
    int64_t at = 0;
    for (Phase& p : phases_) p.weights = at, at += q_.groups * target_ * source_ * p.taps;
    const T* from = static_cast<const T*>(q_.w.data);
    if (forward_ && plain) {
      weights_ = from;
      return;
    }
    held_ = make_buffer({at}, sizeof(T));
    T* to = reinterpret_cast<T*>(held_.get());
    weights_ = to;
    const auto& s = q_.w.strides;
    for (const Phase& p : phases_)
      for (int64_t g = 0; g < q_.groups; ++g)
        for (int64_t m = 0; m < target_; ++m)
          for (int64_t c = 0; c < source_; ++c) {
            const T* w = from + (forward_ ? (g * target_ + m) * s[0] + c * s[1] : (g * source_ + c) * s[0] + m * s[1]);
            for (const int64_t d : p.axis[0].place)
              for (const int64_t h : p.axis[1].place)
                for (const int64_t x : p.axis[2].place) *to++ = w[d * s[2] + h * s[3] + x * s[4]];
          }
  }

  void part(const Phase& p, int64_t image, int64_t group, int64_t first, int64_t most) const {
    const int64_t n = std::min(most, p.positions - first), depth = source_ * p.taps, ld = round_up(n, 16);
    if constexpr (std::is_same_v<T, float>)
      if (target_ <= kFew && all_finite(weights_ + p.weights + group * target_ * depth, target_ * depth))
        return few_channels(p, image, group, first, n);
    const bool plain = is_pointwise(p) && runs_on(from_.strides, forward_ ? q_.size : q_.result);
    char* memory = scratch(bytes_of({(plain ? 0 : depth) + (direct_ ? 0 : target_), ld}, sizeof(T)) + 64);
    T* columns = reinterpret_cast<T*>(memory);
    const Source<T> source{static_cast<const T*>(from_.data) + image * from_.strides[0] + group * source_ * from_.strides[1],
                           from_.strides[1],
                           {from_.strides[2], from_.strides[3], from_.strides[4]}};
    if (!plain) gather_windows(p, source, 0, depth, first, n, columns, ld);
    T* target = static_cast<T*>(to_.data) + image * to_.strides[0] + group * target_ * to_.strides[1];
    OwnMatMul<T> product;
    product.m = target_, product.n = n, product.k = depth;
    product.a = weights_ + p.weights + group * target_ * depth, product.a_row = depth, product.a_col = 1;
    product.b = plain ? source.data + first : columns, product.b_row = plain ? source.channel : ld, product.b_col = 1;
    product.c = direct_ ? target + first : columns + (plain ? 0 : depth) * ld;
    product.c_row = direct_ ? to_.strides[1] : ld;
    if (depth > 0)
      own_product(product);
    else
      for (int64_t m = 0; m < target_; ++m) std::fill_n(product.c + m * product.c_row, n, T(0));
    const T* bias = static_cast<const T*>(q_.bias);
    for (int64_t m = 0; bias && m < target_; ++m) add_bias(product.c + m * product.c_row, n, bias[(group * target_ + m) * q_.bias_stride]);
    if (!direct_) put(p, product.c, ld, first, n, target);
  }

  // Too few channels for a product to be worth columns: a row of results at a time, a tap at a time, in the same order.
  void few_channels(const Phase& p, int64_t image, int64_t group, int64_t first, int64_t n) const {
    T* held = reinterpret_cast<T*>(scratch(bytes_of({target_, n}, sizeof(T))));
    const std::array<int64_t, 3> strides{from_.strides[2], from_.strides[3], from_.strides[4]};
    const T* source = static_cast<const T*>(from_.data) + image * from_.strides[0] + group * source_ * from_.strides[1];
    T* target = static_cast<T*>(to_.data) + image * to_.strides[0] + group * target_ * to_.strides[1];
    for (int64_t m = 0; m < target_; ++m) {
      const T* w = weights_ + p.weights + (group * target_ + m) * source_ * p.taps;
      T* row = direct_ ? target + m * to_.strides[1] + first : held + m * n;
      std::fill_n(row, n, T(0));
      for (int64_t c = 0; c < source_; ++c)
        for (int64_t tap = 0; tap < p.taps; ++tap, ++w)
          each_run(p, strides, tap, first, n, [&](int64_t from, int64_t move, int64_t i, int64_t count) {
            multiply_add(source + c * from_.strides[1] + from, move, *w, count, row + i);
          });
      if (q_.bias) add_bias(row, n, static_cast<const T*>(q_.bias)[(group * target_ + m) * q_.bias_stride]);
    }
    if (!direct_) put(p, held, n, first, n, target);
  }

  // Rows of results to their places.
  void put(const Phase& p, const T* rows, int64_t ld, int64_t first, int64_t n, T* target) const {
    const Axis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
    const auto& s = to_.strides;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t t = first + i, tw = t % w.count, th = t / w.count % h.count, td = t / w.count / h.count;
      T* to = target + (d.first + td * d.stride) * s[2] + (h.first + th * h.stride) * s[3] + (w.first + tw * w.stride) * s[4];
      for (int64_t m = 0; m < target_; ++m) to[m * s[1]] = rows[m * ld + i];
    }
  }

  const Convolution& q_;
  const bool forward_;
  std::vector<Phase> phases_;
  const Convolution::Array &from_, &to_;
  const int64_t source_, target_;
  std::vector<int64_t> block_, units_;  // of each phase: positions of a block, blocks
  bool direct_ = false;
  Buffer held_;
  const T* weights_ = nullptr;
};

// The gradient of w: a chain over images, then positions of y, for each element; threads share out the elements.
template <class T>
class Weights {
 public:
  explicit Weights(const Convolution& q) : q_(q), phase_(phases_of(q)[0]), depth_(q.in * phase_.taps) {
    // Narrower blocks before parts of the rows: each part gathers the windows anew. Bits do not depend on either.
    const int64_t wanted = num_threads() == 1 ? 1 : 2 * num_threads();
    for (across_ = 4 * kLeast;; across_ /= 2) {
      blocks_ = (depth_ + across_ - 1) / across_;
      if (across_ == kLeast || q.groups * blocks_ >= wanted) break;
    }
    const int64_t parts = std::clamp<int64_t>(wanted / (q.groups * blocks_), 1, (q.out + 15) / 16);
    down_ = (q.out + parts - 1) / parts;
    rows_ = (q.out + down_ - 1) / down_;
    step_ = block_of(phase_.positions, 4 * kLeast);
    y_runs_ = runs_on(q.y.strides, q.result);
  }

  void run() const {
    const double time = kTime * static_cast<double>(product(q_.sizes_of_w())) * static_cast<double>(q_.batch * phase_.positions);
    split(q_.groups * blocks_ * rows_, time, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) part(i / rows_ / blocks_, i / rows_ % blocks_ * across_, i % rows_ * down_);
    });
  }

 private:
  void part(int64_t group, int64_t col, int64_t row) const {
    const int64_t cols = std::min(across_, depth_ - col), rows = std::min(down_, q_.out - row), ld = step_;
    T* sums = reinterpret_cast<T*>(scratch(static_cast<size_t>(rows * across_ + (across_ + rows) * ld) * sizeof(T)));
    T* columns = sums + rows * across_;
    T* held = columns + across_ * ld;
    std::fill_n(sums, rows * across_, T(0));
    OwnMatMul<T> product;
    product.m = rows, product.n = cols, product.add = true;
    product.b = columns, product.b_row = 1, product.b_col = ld;
    product.c = sums, product.c_row = across_;
    for (int64_t image = 0; image < q_.batch; ++image) {
      const T* x = static_cast<const T*>(q_.x.data) + image * q_.x.strides[0] + group * q_.in * q_.x.strides[1];
      const T* y = static_cast<const T*>(q_.y.data) + image * q_.y.strides[0] + (group * q_.out + row) * q_.y.strides[1];
      for (int64_t first = 0; first < phase_.positions; first += step_) {
        const int64_t n = std::min(step_, phase_.positions - first);
        if constexpr (std::is_same_v<T, float>)
          if (q_.out == 1 && y_runs_ && !q_.precision.deterministic) {
            add_dots(x, y + first, col, cols, first, n, sums);
            continue;
          }
        gather_windows(phase_, Source<T>{x, q_.x.strides[1], {q_.x.strides[2], q_.x.strides[3], q_.x.strides[4]}}, col, cols, first, n,
                       columns, ld);
        product.k = n;
        product.a = y_runs_ ? y + first : rows_of_y(y, rows, first, n, held, ld);
        product.a_row = y_runs_ ? q_.y.strides[1] : ld, product.a_col = 1;
        own_product(product);
      }
    }
    put(sums, group * q_.out + row, rows, col, cols);
  }

  // One channel of y, sums in any order.
  void add_dots(const T* x, const T* y, int64_t col, int64_t cols, int64_t first, int64_t n, T* sums) const {
    const std::array<int64_t, 3> strides{q_.x.strides[2], q_.x.strides[3], q_.x.strides[4]};
    for (int64_t j = 0; j < cols; ++j)
      each_run(phase_, strides, (col + j) % phase_.taps, first, n, [&](int64_t from, int64_t move, int64_t i, int64_t count) {
        sums[j] += dot(x + (col + j) / phase_.taps * q_.x.strides[1] + from, move, y + i, count);
      });
  }

  const T* rows_of_y(const T* y, int64_t rows, int64_t first, int64_t n, T* held, int64_t ld) const {
    const auto& s = q_.y.strides;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t t = first + i, w = t % q_.result[2], h = t / q_.result[2] % q_.result[1], d = t / q_.result[2] / q_.result[1];
      const T* from = y + d * s[2] + h * s[3] + w * s[4];
      for (int64_t m = 0; m < rows; ++m) held[m * ld + i] = from[m * s[1]];
    }
    return held;
  }

  void put(const T* sums, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    const auto& s = q_.w.strides;
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t r = col + j, k = r % phase_.taps, w = k % q_.kernel[2], h = k / q_.kernel[2] % q_.kernel[1],
                    d = k / q_.kernel[2] / q_.kernel[1];
      T* to = static_cast<T*>(q_.w.data) + row * s[0] + r / phase_.taps * s[1] + d * s[2] + h * s[3] + w * s[4];
      for (int64_t m = 0; m < rows; ++m) to[m * s[0]] = sums[m * across_ + j];
    }
  }

  const Convolution& q_;
  const Phase phase_;
  const int64_t depth_;  // rows of columns: channels by taps
  int64_t across_, blocks_, down_, rows_, step_;
  bool y_runs_;
};

Dims dims_of(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// What is read, row-major: columns are gathered from runs of neighbours.
void bring_together(Convolution::Array& a, const std::array<int64_t, 5>& sizes, DType type, Buffer& held) {
  if (a.strides[4] <= 1 || sizes[4] == 1) return;
  const Dims shape = dims_of(sizes), plain = contiguous_strides(shape);
  held = make_buffer({product(shape)}, size_of(type));
  run(ir::copy_of(shape, {a.data, type, dims_of(a.strides)}, {held.get(), type, plain}));
  a.data = held.get();
  std::copy(plain.begin(), plain.end(), a.strides.begin());
}

template <class T>
void run_typed(const Convolution& asked) {
  Convolution q = asked;
  Buffer held[2];
  if (q.use != Use::Input) bring_together(q.x, q.sizes_of_x(), q.dtype, held[0]);
  if (q.use != Use::Forward) bring_together(q.y, q.sizes_of_y(), q.dtype, held[1]);
  if (std::is_same_v<T, float> && depthwise(q)) return;
  if (q.use == Use::Weight)
    Weights<T>(q).run();
  else
    Results<T>(q).run();
}

// Narrow types are computed in a wider one and converted back.
void run_wider(const Convolution& asked, DType wide) {
  const size_t item = size_of(wide);
  Convolution q = asked;
  q.dtype = wide;
  Buffer held[4];
  const auto widen = [&](Convolution::Array& a, const std::array<int64_t, 5>& sizes, Use written, Buffer& to) {
    const Dims shape = dims_of(sizes), plain = contiguous_strides(shape);
    to = make_buffer({product(shape)}, item);
    if (q.use != written) run(ir::copy_of(shape, {a.data, asked.dtype, dims_of(a.strides)}, {to.get(), wide, plain}));
    a.data = to.get();
    std::copy(plain.begin(), plain.end(), a.strides.begin());
  };
  widen(q.x, q.sizes_of_x(), Use::Input, held[0]), widen(q.w, q.sizes_of_w(), Use::Weight, held[1]);
  widen(q.y, q.sizes_of_y(), Use::Forward, held[2]);
  if (q.bias) {
    const int64_t channels = q.groups * (q.use == Use::Forward ? q.out : q.in);
    held[3] = make_buffer({channels}, item);
    run(ir::copy_of({channels}, {const_cast<void*>(q.bias), asked.dtype, {q.bias_stride}}, {held[3].get(), wide, {1}}));
    q.bias = held[3].get(), q.bias_stride = 1;
  }
  run(q);
  const auto back = [&](const Convolution::Array& from, const Convolution::Array& to, const std::array<int64_t, 5>& sizes) {
    run(ir::copy_of(dims_of(sizes), {from.data, wide, dims_of(from.strides)}, {to.data, asked.dtype, dims_of(to.strides)}));
  };
  if (q.use == Use::Forward) back(q.y, asked.y, q.sizes_of_y());
  if (q.use == Use::Input) back(q.x, asked.x, q.sizes_of_x());
  if (q.use == Use::Weight) back(q.w, asked.w, q.sizes_of_w());
}

}  // namespace

void run(const Convolution& q) {
  if (convolve_by_onednn(q)) return;
  const auto typed = [&](auto zero) { run_typed<decltype(zero)>(q); };
  if (!in_product_type(q.dtype, typed, [&](DType wide) { run_wider(q, wide); }))
    throw RuntimeError("convolution: wanted numbers, got bool; convert them first");
}

}  // namespace naru::host
