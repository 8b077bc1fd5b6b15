// Convolutions: by oneDNN where that is faster (onednn_convolution.h), else im2col and naru's own matrix product, one block of positions at
// a time. Each element is then one chain of fma in the order that ir::Convolution defines, so its bits do not depend on blocks or threads.
#include <algorithm>
#include <cmath>

#include "backends/cpu/conv/columns.h"
#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/gemm/product_types.h"
#include "backends/cpu/libraries/onednn_convolution.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using ir::Convolution;
using Use = Convolution::Use;

// With at most this many result channels per group, no product is used.
constexpr int64_t kFew = 2;
// Elements of a block of columns (sized for the L2 cache), and the bounds of the length of its rows.
constexpr int64_t kBlock = 1 << 16, kLeast = 32, kMost = 1024;
// Approximate nanoseconds per multiply-add.
constexpr double kTime = 0.02;

// y[i] = fma(x[i * move], w, y[i])
NARU_WIDE void multiply_add(const float* x, int64_t move, float w, int64_t n, float* y) {
  if (move == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = __builtin_fmaf(x[i], w, y[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = __builtin_fmaf(x[i * move], w, y[i]);
}
// The dot product of x[i * move] and y[i], in 16 partial sums.
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

// Positions per block whose columns have `depth` elements each: as many as fit, in blocks of nearly equal size.
int64_t block_of(int64_t positions, int64_t depth) {
  const int64_t most = std::clamp(kBlock / std::max<int64_t>(depth, 1), kLeast, kMost);
  const int64_t blocks = (positions + most - 1) / most;
  return round_up((positions + blocks - 1) / blocks, kLeast);
}

// True if the positions of the spatial dimensions are contiguous in memory.
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

// True if multiplying a zero of the padding has no effect, i.e. no weight is infinite or NaN.
bool all_finite(const float* w, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(w[i])) return false;
  return true;
}

// Computes y from x and w, or x from y and w: `target` channels, each from `source` channels.
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
  // Packs one matrix per group and phase: target channels by source channels and taps.
  void pack_weights() {
    const std::array<int64_t, 5> sizes = q_.sizes_of_w();
    bool plain = true;
    for (int64_t d = 5, next = 1; d-- > 0;) {
      const auto i = static_cast<size_t>(d);
      plain &= sizes[i] == 1 || q_.w.strides[i] == next;  // missing dimensions have stride 0
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

  // Too few channels for im2col to pay off: computes a row of results at a time, a tap at a time, in the same order.
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

  // Stores rows of results at their positions in the target.
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
  std::vector<int64_t> block_, units_;  // per phase: positions of a block, number of blocks
  bool direct_ = false;
  Buffer held_;
  const T* weights_ = nullptr;
};

// The gradient of w. Each element is one chain over images, then positions of y; threads split the elements.
template <class T>
class Weights {
 public:
  explicit Weights(const Convolution& q) : q_(q), phase_(phases_of(q)[0]), depth_(q.in * phase_.taps) {
    // Prefer narrower blocks to splitting the rows, as each part of the rows gathers the windows again. Neither changes the bits.
    const int64_t wanted = num_threads() == 1 ? 1 : 2 * num_threads();
    for (across_ = 4 * kLeast;; across_ /= 2) {
      blocks_ = (depth_ + across_ - 1) / across_;
      if (across_ == kLeast || q.groups * blocks_ >= wanted) break;
    }
    const int64_t parts = std::clamp<int64_t>(wanted / (q.groups * blocks_), 1, (q.out + 15) / 16);
    down_ = (q.out + parts - 1) / parts;
    rows_ = (q.out + down_ - 1) / down_;
    step_ = block_of(phase_.positions, 4 * kLeast);
    // Images of few positions are multiplied together.
    if (q.out > 1 && phase_.positions > 0 && phase_.positions <= 4 * kLeast)
      together_ = std::clamp<int64_t>(kBlock / (4 * kLeast) / phase_.positions, 1, q.batch);
    if (together_ > 1) step_ = together_ * phase_.positions;
    y_runs_ = together_ == 1 && runs_on(q.y.strides, q.result);
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
    const auto gather = [&](const T* x, int64_t first, int64_t n, T* to) {
      gather_windows(phase_, Source<T>{x, q_.x.strides[1], {q_.x.strides[2], q_.x.strides[3], q_.x.strides[4]}}, col, cols, first, n, to,
                     ld);
    };
    for (int64_t image = 0; image < q_.batch; image += together_) {
      const T* x = static_cast<const T*>(q_.x.data) + image * q_.x.strides[0] + group * q_.in * q_.x.strides[1];
      const T* y = static_cast<const T*>(q_.y.data) + image * q_.y.strides[0] + (group * q_.out + row) * q_.y.strides[1];
      if (together_ > 1) {
        const int64_t images = std::min(together_, q_.batch - image), n = phase_.positions;
        for (int64_t i = 0; i < images; ++i) {
          gather(x + i * q_.x.strides[0], 0, n, columns + i * n);
          rows_of_y(y + i * q_.y.strides[0], rows, 0, n, held + i * n, ld);
        }
        product.k = images * n;
        product.a = held, product.a_row = ld, product.a_col = 1;
        own_product(product);
        continue;
      }
      for (int64_t first = 0; first < phase_.positions; first += step_) {
        const int64_t n = std::min(step_, phase_.positions - first);
        if constexpr (std::is_same_v<T, float>)
          if (q_.out == 1 && y_runs_ && !q_.precision.deterministic) {
            add_dots(x, y + first, col, cols, first, n, sums);
            continue;
          }
        gather(x, first, n, columns);
        product.k = n;
        product.a = y_runs_ ? y + first : rows_of_y(y, rows, first, n, held, ld);
        product.a_row = y_runs_ ? q_.y.strides[1] : ld, product.a_col = 1;
        own_product(product);
      }
    }
    put(sums, group * q_.out + row, rows, col, cols);
  }

  // For one channel of y; sums may be in any order.
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
    if (runs_on(s, q_.kernel) && (q_.in == 1 || s[1] == phase_.taps)) {
      T* const to = static_cast<T*>(q_.w.data) + row * s[0] + col;
      for (int64_t m = 0; m < rows; ++m) std::copy_n(sums + m * across_, cols, to + m * s[0]);
      return;
    }
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t r = col + j, k = r % phase_.taps, w = k % q_.kernel[2], h = k / q_.kernel[2] % q_.kernel[1],
                    d = k / q_.kernel[2] / q_.kernel[1];
      T* to = static_cast<T*>(q_.w.data) + row * s[0] + r / phase_.taps * s[1] + d * s[2] + h * s[3] + w * s[4];
      for (int64_t m = 0; m < rows; ++m) to[m * s[0]] = sums[m * across_ + j];
    }
  }

  const Convolution& q_;
  const Phase phase_;
  const int64_t depth_;  // rows of the column matrix: channels by taps
  int64_t across_, blocks_, down_, rows_, step_;
  int64_t together_ = 1;
  bool y_runs_;
};

Dims dims_of(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// Copies an input to row-major order if its innermost stride is not 1: columns are gathered from contiguous runs.
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
  if (std::is_same_v<T, float> && depthwise_last(asked)) return;
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

// Computes narrow types in a wider one and converts back.
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
  if (pointwise(q) || convolve_by_onednn(q)) return;
  const auto typed = [&](auto zero) { run_typed<decltype(zero)>(q); };
  if (!in_product_type(q.dtype, typed, [&](DType wide) { run_wider(q, wide); }))
    throw RuntimeError("convolution: wanted numbers, got bool; convert them first");
}

}  // namespace naru::cpu
