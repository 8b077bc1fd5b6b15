// The steps of LSTM and GRU layers, forward and backward. A step is a product with packed weights and one kernel over all gates of a row; threads
// share the units of the hidden state. Each element of a product is one chain of multiply-adds, as in deterministic mode, so neither threads nor
// batches change its bits.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/loops/loops.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::cpu {
namespace {

using ir::HostLoop;
using ir::ProgramBuilder;
namespace op = ir::op;

constexpr int64_t kLstm = 2;   // ops::Recurrent::Lstm
constexpr int64_t kPanel = 32;  // columns of a packed panel

// Writes programs whose values all have one type.
class GateProgram {
 public:
  using Arg = ProgramBuilder::Arg;
  explicit GateProgram(DType t) : type_(t), b_(program_) {}
  Arg in() { return b_.input(type_, type_); }
  Arg one() { return b_.param(type_); }
  Arg f(ir::OpId id, Arg a) { return b_.result(b_.node(id, type_, {a}), type_); }
  Arg f(ir::OpId id, Arg a, Arg c) { return b_.result(b_.node(id, type_, {a, c}), type_); }
  Arg mul(Arg a, Arg c) { return f(op::mul, a, c); }
  Arg add(Arg a, Arg c) { return f(op::add, a, c); }
  Arg sub(Arg a, Arg c) { return f(op::sub, a, c); }
  void out(std::initializer_list<Arg> nodes) {
    for (const Arg& a : nodes) b_.output(a.index);
  }
  const Kernel* kernel() { return &kernel_of(program_, 0); }

 private:
  DType type_;
  ir::Program program_;
  ProgramBuilder b_;
};

// (i, f, g, o, c) before the activations -> (i, f, g, o, c, tanh(c), h), or (c, h).
const Kernel* lstm_forward(DType t, bool keeps) {
  GateProgram p(t);
  const auto bi = p.in(), bf = p.in(), bg = p.in(), bo = p.in(), cell = p.in();
  const auto i = p.f(op::sigmoid, bi), f = p.f(op::sigmoid, bf), g = p.f(op::tanh, bg), o = p.f(op::sigmoid, bo);
  const auto kept = p.mul(f, cell), fresh = p.mul(i, g), c = p.add(kept, fresh), tc = p.f(op::tanh, c), h = p.mul(o, tc);
  if (keeps) p.out({i, f, g, o, c, tc, h});
  else p.out({c, h});
  return p.kernel();
}

// (i, f, g, o, c before, tanh(c), gradients of out, of h and of c) -> gradients (i, f, g, o before the activations, c before).
const Kernel* lstm_backward(DType t) {
  GateProgram p(t);
  const auto i = p.in(), f = p.in(), g = p.in(), o = p.in(), cell = p.in(), tc = p.in(), dout = p.in(), dh = p.in(), dc = p.in();
  const auto one = p.one();
  const auto less = [&](auto a) { return p.sub(one, a); };
  const auto e = p.add(dout, dh), through = p.mul(p.mul(e, o), less(p.mul(tc, tc))), d = p.add(dc, through);
  const auto to_o = p.mul(p.mul(p.mul(e, tc), o), less(o)), to_i = p.mul(p.mul(p.mul(d, g), i), less(i));
  const auto to_f = p.mul(p.mul(p.mul(d, cell), f), less(f)), to_g = p.mul(p.mul(d, i), less(p.mul(g, g))), before = p.mul(d, f);
  p.out({to_i, to_f, to_g, to_o, before});
  return p.kernel();
}

// (r, z before the activations, n from the input, n from h, h) -> (r, z, n, n from h, h), or (h).
const Kernel* gru_forward(DType t, bool keeps) {
  GateProgram p(t);
  const auto br = p.in(), bz = p.in(), nx = p.in(), nh = p.in(), before = p.in();
  const auto r = p.f(op::sigmoid, br), z = p.f(op::sigmoid, bz), n = p.f(op::tanh, p.add(nx, p.mul(r, nh)));
  const auto h = p.add(n, p.mul(z, p.sub(before, n)));
  if (keeps) p.out({r, z, n, p.f(op::copy, nh), h});
  else p.out({h});
  return p.kernel();
}

// (r, z, n, n from h, h before, gradients of out and of h) -> gradients (r, z, n from the input; r, z, n from h; h before, without the product).
const Kernel* gru_backward(DType t) {
  GateProgram p(t);
  const auto r = p.in(), z = p.in(), n = p.in(), nh = p.in(), before = p.in(), dout = p.in(), dh = p.in();
  const auto one = p.one();
  const auto less = [&](auto a) { return p.sub(one, a); };
  const auto e = p.add(dout, dh), dn = p.mul(p.mul(e, less(z)), less(p.mul(n, n)));
  const auto dz = p.mul(p.mul(p.mul(e, p.sub(before, n)), z), less(z)), dr = p.mul(p.mul(p.mul(dn, nh), r), less(r));
  p.out({dr, dz, dn, p.f(op::copy, dr), p.f(op::copy, dz), p.mul(dn, r), p.mul(e, z)});
  return p.kernel();
}

struct StepKernels {
  const Kernel *forward, *keeping, *backward;
  StepKernels(DType t, bool lstm)
      : forward(lstm ? lstm_forward(t, false) : gru_forward(t, false)),
        keeping(lstm ? lstm_forward(t, true) : gru_forward(t, true)),
        backward(lstm ? lstm_backward(t) : gru_backward(t)) {}
};
template <class T>
const StepKernels& step_kernels(bool lstm) {
  static const StepKernels& first = *new StepKernels(naru::dtype_of<T>(), true);
  static const StepKernels& second = *new StepKernels(naru::dtype_of<T>(), false);
  return lstm ? first : second;
}
template <class T>
uint64_t one_bits() {
  if constexpr (sizeof(T) == 8) return std::bit_cast<uint64_t>(T(1));
  else return std::bit_cast<uint32_t>(T(1));
}

int64_t padded(int64_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

// A matrix (depth, cols) as panels of kPanel columns, each row of which is consecutive. Missing columns are 0.
template <class T>
class Panels {
 public:
  Panels(const T* b, int64_t b_row, int64_t b_col, int64_t depth, int64_t cols) : depth_(depth), data_(static_cast<size_t>(depth * padded(cols))) {
    const int64_t panels = padded(cols) / kPanel;
    split(panels, 0.4 * static_cast<double>(depth * cols), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) fill(b + p * kPanel * b_col, b_row, b_col, std::min(kPanel, cols - p * kPanel), at(p));
    });
  }
  T* at(int64_t panel) { return data_.data() + panel * depth_ * kPanel; }
  // c (m rows, c_row apart) = a times columns [begin, end) of the matrix; both are multiples of kPanel.
  void multiply(int64_t m, const T* a, int64_t a_row, int64_t begin, int64_t end, T* c, int64_t c_row) {
    for (int64_t j = begin; j < end; j += kPanel)
      own_product<T>({m, kPanel, depth_, a, a_row, 1, at(j / kPanel), kPanel, 1, c + j, c_row});
  }

 private:
  void fill(const T* b, int64_t b_row, int64_t b_col, int64_t cols, T* to) const {
    constexpr int64_t kBlock = 16;  // rows of the panel at a time, so that columns are read by whole cache lines
    for (int64_t d = 0; d < depth_; d += kBlock) {
      const int64_t rows = std::min(kBlock, depth_ - d);
      if (b_col == 1)
        for (int64_t r = 0; r < rows; ++r) std::memcpy(to + (d + r) * kPanel, b + (d + r) * b_row, static_cast<size_t>(cols) * sizeof(T));
      else
        for (int64_t x = 0; x < cols; ++x)
          for (int64_t r = 0; r < rows; ++r) to[(d + r) * kPanel + x] = b[(d + r) * b_row + x * b_col];
    }
  }
  int64_t depth_;
  std::vector<T> data_;
};

// y[i] = x[i] + (y[i] + bias[i]).
NARU_WIDE void add_both(const float* x, const float* bias, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (y[i] + bias[i]);
}
NARU_WIDE void add_both(const double* x, const double* bias, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (y[i] + bias[i]);
}
NARU_WIDE void add_to(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + y[i];
}
NARU_WIDE void add_to(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + y[i];
}

// The steps of a sequence, and where their rows lie.
struct Steps {
  const int64_t* sizes;
  int64_t count;
  bool reverse;
  std::vector<int64_t> first;  // row of the first element of each step

  Steps(const HostLoop::Array& array, bool backwards) : sizes(array.as<int64_t>()), count(array.numel()), reverse(backwards) {
    first.resize(static_cast<size_t>(count));
    for (int64_t t = 0, row = 0; t < count; row += sizes[t++]) first[static_cast<size_t>(t)] = row;
  }
  int64_t step(int64_t k) const { return reverse ? count - 1 - k : k; }
  int64_t row(int64_t t) const { return first[static_cast<size_t>(t)]; }
  // The rows of step k whose state is that of the step before; others begin with their initial state.
  int64_t continued(int64_t k) const { return k == 0 ? 0 : std::min(sizes[step(k)], sizes[step(k - 1)]); }
  // What row r of step k had before: a row of `all`, or of `initial`.
  template <class T>
  T* before(int64_t k, int64_t r, T* all, T* initial, int64_t width) const {
    return r < continued(k) ? all + (row(step(k - 1)) + r) * width : initial + r * width;
  }
  // Copies the last state of each sequence from `all` to `last`.
  template <class T>
  void copy_last(const T* all, T* last, int64_t width) const {
    const auto bytes = static_cast<size_t>(width) * sizeof(T);
    for (int64_t t = count - 1, done = 0; t >= 0; --t) {
      if (reverse && t > 0) continue;
      for (int64_t r = reverse ? 0 : done; r < sizes[t]; ++r) std::memcpy(last + r * width, all + (row(t) + r) * width, bytes);
      done = sizes[t];
    }
  }
};

template <class T>
class Forward {
 public:
  explicit Forward(const HostLoop& loop)
      : lstm_(loop.numbers[0] == kLstm), width_(loop.arrays[4].sizes[1]), gates_(lstm_ ? 4 : 3), steps_(loop.arrays[3], loop.numbers[1] != 0),
        from_input_(at(loop, 0)), bias_(at(loop, 2)), h0_(at(loop, 4)), c0_(at(loop, 5)), out_(at(loop, 6)), last_h_(at(loop, 7)),
        last_c_(at(loop, 8)), kept_(at(loop, 9)), cells_(at(loop, 10)), tanh_(at(loop, 11)), pitch_(padded(width_)) {
    const T* w = at(loop, 1);
    for (int g = 0; g < gates_; ++g) panels_.emplace_back(w + g * width_ * width_, 1, width_, width_, width_);
    plane_ = steps_.sizes[0] * pitch_;
    hidden_.resize(static_cast<size_t>(gates_ * plane_));
    if (lstm_ && !kept_) std::memcpy(last_c_, c0_, static_cast<size_t>(steps_.sizes[0] * width_) * sizeof(T));
  }
  void run() {
    for (int64_t k = 0; k < steps_.count; ++k) {
      const auto n = static_cast<double>(steps_.sizes[steps_.step(k)]), units = static_cast<double>(width_);
      const double time = n * units * (gates_ * units / 60 + 3);
      split(width_, time, kPanel, [&](int64_t begin, int64_t end) { part(k, begin, end); });
    }
    steps_.copy_last(out_, last_h_, width_);
    if (lstm_ && kept_) steps_.copy_last(cells_, last_c_, width_);
  }

 private:
  static T* at(const HostLoop& loop, size_t i) { return loop.arrays[i].as<T>(); }
  T* hidden(int g, int64_t r) { return hidden_.data() + g * plane_ + r * pitch_; }

  void part(int64_t k, int64_t begin, int64_t end) {
    const int64_t t = steps_.step(k), n = steps_.sizes[t], old = steps_.continued(k), stop = padded(end);
    for (int g = 0; g < gates_; ++g) {
      auto& panels = panels_[static_cast<size_t>(g)];
      if (old > 0) panels.multiply(old, steps_.before(k, 0, out_, h0_, width_), width_, begin, stop, hidden(g, 0), pitch_);
      if (old < n) panels.multiply(n - old, h0_ + old * width_, width_, begin, stop, hidden(g, old), pitch_);
    }
    for (int64_t r = 0; r < n; ++r) row(k, t, r, begin, end - begin);
  }
  void row(int64_t k, int64_t t, int64_t r, int64_t begin, int64_t n) {
    const int64_t at = steps_.row(t) + r;
    const StepKernels& kernels = step_kernels<T>(lstm_);
    const T* const from_input = from_input_ + at * gates_ * width_ + begin;
    for (int g = 0; g < gates_; ++g) {
      T* const h = hidden(g, r) + begin;
      const T* const x = from_input + g * width_;
      const bool apart = !lstm_ && g == 2;  // the reset gate stands between what n gets from h and from the input
      if (bias_ && apart) add_to(bias_ + g * width_ + begin, h, n);
      else if (bias_) add_both(x, bias_ + g * width_ + begin, h, n);
      else if (!apart) add_to(x, h, n);
    }
    T* const out = out_ + at * width_ + begin;
    T* const kept = kept_ ? kept_ + at * 4 * width_ + begin : nullptr;
    if (lstm_) {
      T* const cell = kept ? steps_.before(k, r, cells_, c0_, width_) + begin : last_c_ + r * width_ + begin;
      void* all[] = {hidden(0, r) + begin, hidden(1, r) + begin, hidden(2, r) + begin, hidden(3, r) + begin, cell, kept ? kept : cell,
                     kept ? kept + width_ : out, kept + 2 * width_ * !!kept, kept + 3 * width_ * !!kept, cells_ + (at * width_ + begin) * !!kept,
                     tanh_ + (at * width_ + begin) * !!kept, out};
      (kept ? kernels.keeping : kernels.forward)->run(all, nullptr, n, 0);
    } else {
      T* const before = steps_.before(k, r, out_, h0_, width_) + begin;
      void* all[] = {hidden(0, r) + begin, hidden(1, r) + begin, const_cast<T*>(from_input) + 2 * width_, hidden(2, r) + begin, before,
                     kept ? kept : out, kept + width_ * !!kept, kept + 2 * width_ * !!kept, kept + 3 * width_ * !!kept, out};
      (kept ? kernels.keeping : kernels.forward)->run(all, nullptr, n, 0);
    }
  }

  bool lstm_;
  int64_t width_;
  int gates_;
  Steps steps_;
  const T *from_input_, *bias_;
  T *h0_, *c0_, *out_, *last_h_, *last_c_, *kept_, *cells_, *tanh_;
  int64_t pitch_, plane_ = 0;
  std::vector<Panels<T>> panels_;  // of each gate: the transposed weights
  std::vector<T> hidden_;          // what h gives to each gate: (gate, row, unit)
};

template <class T>
class Backward {
 public:
  explicit Backward(const HostLoop& loop)
      : lstm_(loop.numbers[0] == kLstm), width_(loop.arrays[3].sizes[1]), gates_(lstm_ ? 4 : 3), steps_(loop.arrays[1], loop.numbers[1] != 0),
        kept_(at(loop, 2)), h0_(at(loop, 3)), c0_(at(loop, 4)), out_(at(loop, 5)), cells_(at(loop, 6)), tanh_(at(loop, 7)), dout_(at(loop, 8)),
        dh_(at(loop, 9)), dc_(at(loop, 10)), to_input_(at(loop, 11)), to_hidden_(lstm_ ? to_input_ : at(loop, 12)), pitch_(padded(width_)),
        weights_(at(loop, 0), width_, 1, gates_ * width_, width_) {
    const int64_t batch = steps_.sizes[0];
    product_.resize(static_cast<size_t>(batch * pitch_));
    for (int64_t r = 0; r < batch; ++r) std::memcpy(product_.data() + r * pitch_, dh_ + r * width_, static_cast<size_t>(width_) * sizeof(T));
    if (!lstm_) carry_.resize(static_cast<size_t>(batch * width_));
  }
  void run() {
    // What the units of a step need of the step behind it are their own columns of the product.
    for (int64_t k = steps_.count; k >= 0; --k) {
      const auto n = static_cast<double>(steps_.sizes[steps_.step(std::max<int64_t>(k - 1, 0))]), units = static_cast<double>(width_);
      const double time = n * units * (gates_ * units / 60 + 3);
      split(width_, time, kPanel, [&](int64_t begin, int64_t end) {
        if (k < steps_.count) multiply(k, begin, end);
        for (int64_t r = 0; k > 0 && r < steps_.sizes[steps_.step(k - 1)]; ++r) row(k - 1, r, begin, end - begin);
      });
    }
    for (int64_t r = 0; r < steps_.sizes[0]; ++r) std::memcpy(dh_ + r * width_, product_.data() + r * pitch_, static_cast<size_t>(width_) * sizeof(T));
  }

 private:
  static T* at(const HostLoop& loop, size_t i) { return loop.arrays[i].as<T>(); }

  // The gradient of the state before step k.
  void multiply(int64_t k, int64_t begin, int64_t end) {
    const int64_t t = steps_.step(k), n = steps_.sizes[t], depth = gates_ * width_;
    weights_.multiply(n, to_hidden_ + steps_.row(t) * depth, depth, begin, padded(end), product_.data(), pitch_);
    for (int64_t r = 0; r < n && !lstm_; ++r) add_to(carry_.data() + r * width_ + begin, product_.data() + r * pitch_ + begin, end - begin);
  }
  void row(int64_t k, int64_t r, int64_t begin, int64_t n) {
    const int64_t at = steps_.row(steps_.step(k)) + r, here = at * width_ + begin;
    const uint64_t one[] = {one_bits<T>()};
    T* const kept = kept_ + at * 4 * width_ + begin;
    T* const product = product_.data() + r * pitch_ + begin;
    T* const to = to_input_ + at * gates_ * width_ + begin;
    const Kernel& kernel = *step_kernels<T>(lstm_).backward;
    if (lstm_) {
      T* const dc = dc_ + r * width_ + begin;
      void* all[] = {kept, kept + width_, kept + 2 * width_, kept + 3 * width_, steps_.before(k, r, cells_, c0_, width_) + begin, tanh_ + here,
                     dout_ + here, product, dc, to, to + width_, to + 2 * width_, to + 3 * width_, dc};
      kernel.run(all, one, n, 0);
    } else {
      T* const hidden = to_hidden_ + at * gates_ * width_ + begin;
      void* all[] = {kept, kept + width_, kept + 2 * width_, kept + 3 * width_, steps_.before(k, r, out_, h0_, width_) + begin, dout_ + here,
                     product, to, to + width_, to + 2 * width_, hidden, hidden + width_, hidden + 2 * width_, carry_.data() + r * width_ + begin};
      kernel.run(all, one, n, 0);
    }
  }

  bool lstm_;
  int64_t width_;
  int gates_;
  Steps steps_;
  T *kept_, *h0_, *c0_, *out_, *cells_, *tanh_, *dout_, *dh_, *dc_, *to_input_, *to_hidden_;
  int64_t pitch_;
  Panels<T> weights_;
  std::vector<T> product_;  // the gradient of h that later steps give, (row, unit)
  std::vector<T> carry_;    // GRU: the part of it that passes by the gates
};

}  // namespace

void recurrent_steps(const HostLoop& loop) {
  with_type<float, double>(loop.arrays[0].dtype, [&]<class T>(T) { Forward<T>(loop).run(); });
}

void recurrent_gradients(const HostLoop& loop) {
  with_type<float, double>(loop.arrays[0].dtype, [&]<class T>(T) { Backward<T>(loop).run(); });
}

}  // namespace naru::cpu
