// The steps of LSTM and GRU layers, forward and backward. A step is a product with packed weights and one kernel over all gates of a row; threads
// share the units of the hidden state. Each element of a product is one chain of multiply-adds, as in deterministic mode, so neither threads nor
// batches change its bits.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/loops/loops.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::cpu {
namespace {

using ir::HostLoop;
using ir::ProgramBuilder;
namespace op = ir::op;

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
  if (keeps)
    p.out({i, f, g, o, c, tc, h});
  else
    p.out({c, h});
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
  if (keeps)
    p.out({r, z, n, p.f(op::copy, nh), h});
  else
    p.out({h});
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
  static const StepKernels& of_lstm = *new StepKernels(naru::dtype_of<T>(), true);
  static const StepKernels& of_gru = *new StepKernels(naru::dtype_of<T>(), false);
  return lstm ? of_lstm : of_gru;
}
template <class T>
uint64_t one_bits() {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(T(1));
  else
    return std::bit_cast<uint32_t>(T(1));
}

// Threads share units by this many: few rows want two panels at once.
constexpr int64_t kUnits = 2 * kPanelColumns;

// 64-byte aligned memory for one sequence.
template <class T>
class Memory {
 public:
  explicit Memory(int64_t count = 0) : data_(count ? make_buffer({count}, sizeof(T)) : Buffer()) {}
  T* get() const { return reinterpret_cast<T*>(data_.get()); }

 private:
  Buffer data_;
};

// A matrix (depth, cols), packed. Missing columns are 0.
template <class T>
class Panels {
 public:
  Panels(const T* b, int64_t b_row, int64_t b_col, int64_t depth, int64_t cols) : depth_(depth), data_(depth * whole_panels(cols)) {
    split(whole_panels(cols) / kPanelColumns, 0.4 * static_cast<double>(depth * cols), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        pack_panel(b + p * kPanelColumns * b_col, b_row, b_col, depth, std::min(kPanelColumns, cols - p * kPanelColumns),
                   at(p * kPanelColumns));
    });
  }
  // c (m rows, c_row apart) = a times columns [begin, end) of the matrix; both are multiples of kPanelColumns.
  void multiply(int64_t m, const T* a, int64_t a_row, int64_t begin, int64_t end, T* c, int64_t c_row) const {
    own_panel_product<T>({m, end - begin, depth_, a, a_row, at(begin), c + begin, c_row});
  }

 private:
  T* at(int64_t column) const { return data_.get() + column * depth_; }
  int64_t depth_;
  Memory<T> data_;
};

template <class T>
[[gnu::always_inline]] inline void gather_up(const T* x, const T* x_bias, const T* h_bias, T* h, int64_t n) {
  if (x_bias && h_bias)
    for (int64_t i = 0; i < n; ++i) h[i] = (x[i] + x_bias[i]) + (h[i] + h_bias[i]);
  else
    for (int64_t i = 0; i < n; ++i) h[i] = x[i] + h[i];
}
// h[i] = what the input and the state give to a gate, biases added to each.
NARU_WIDE void both_parts(const float* x, const float* x_bias, const float* h_bias, float* h, int64_t n) {
  gather_up(x, x_bias, h_bias, h, n);
}
NARU_WIDE void both_parts(const double* x, const double* x_bias, const double* h_bias, double* h, int64_t n) {
  gather_up(x, x_bias, h_bias, h, n);
}
// y[i] = x[i] + y[i].
NARU_WIDE void add_to(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + y[i];
}
NARU_WIDE void add_to(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + y[i];
}

// The rows of an array of the loop. `data` is null if there is none.
template <class T>
struct Rows {
  T* data;
  int64_t width;
  Rows(const HostLoop& loop, size_t i) : data(loop.arrays[i].as<T>()), width(data ? loop.arrays[i].sizes.back() : 0) {}
  T* at(int64_t row) const { return data + row * width; }
};

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
  T* before(int64_t k, int64_t r, const Rows<T>& all, const Rows<T>& initial) const {
    return r < continued(k) ? all.at(row(step(k - 1)) + r) : initial.at(r);
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
      : lstm_(loop.numbers[0] == 4),
        gates_(lstm_ ? 4 : 3),
        steps_(loop.arrays[5], loop.numbers[1] != 0),
        x_(loop, 0),
        ih_bias_(loop, 3),
        hh_bias_(loop, 4),
        h0_(loop, 6),
        c0_(loop, 7),
        out_(loop, 8),
        last_h_(loop, 9),
        last_c_(loop, 10),
        kept_(loop, 11),
        cells_(loop, 12),
        tanh_(loop, 13),
        in_(loop.arrays[0].sizes[1]),
        width_(loop.arrays[6].sizes[1]),
        pitch_(whole_panels(width_)) {
    const Rows<T> ih(loop, 1), hh(loop, 2);
    for (int g = 0; g < gates_; ++g) {
      ih_.emplace_back(ih.data + g * width_ * in_, 1, in_, in_, width_);
      hh_.emplace_back(hh.data + g * width_ * width_, 1, width_, width_, width_);
    }
    most_ = std::max(kBlockRows, steps_.sizes[0]);
    hidden_ = Memory<T>(gates_ * steps_.sizes[0] * pitch_);
    input_ = Memory<T>(gates_ * most_ * pitch_);
    if (lstm_ && !kept_.data) std::memcpy(last_c_.data, c0_.data, static_cast<size_t>(steps_.sizes[0] * width_) * sizeof(T));
  }
  void run() {
    for (int64_t k = 0; k < steps_.count; ++k) {
      const bool fresh = take_block(k);
      const auto n = static_cast<double>(steps_.sizes[steps_.step(k)] + (fresh ? rows_ : 0)), units = static_cast<double>(width_);
      split(width_, n * units * (gates_ * units / 60 + 3), kUnits, [&](int64_t begin, int64_t end) {
        if (fresh)
          for (int g = 0; g < gates_; ++g)
            ih_[static_cast<size_t>(g)].multiply(rows_, x_.at(first_), in_, begin, whole_panels(end), input(g, first_), pitch_);
        part(k, begin, end);
      });
    }
    steps_.copy_last(out_.data, last_h_.data, width_);
    if (lstm_ && kept_.data) steps_.copy_last(cells_.data, last_c_.data, width_);
  }

 private:
  static constexpr int64_t kBlockRows = 64;  // of the input at a time: what they give to the gates stays in L2
  T* hidden(int g, int64_t r) const { return hidden_.get() + (g * steps_.sizes[0] + r) * pitch_; }
  T* input(int g, int64_t row) const { return input_.get() + (g * most_ + row - first_) * pitch_; }

  // Chooses the rows of the input to multiply before step k. False: that was done for an earlier step.
  bool take_block(int64_t k) {
    const int64_t row = steps_.row(steps_.step(k));
    if (row >= first_ && row < first_ + rows_) return false;
    first_ = row, rows_ = steps_.sizes[steps_.step(k)];
    for (int64_t next = k + 1; next < steps_.count; ++next) {
      const int64_t n = steps_.sizes[steps_.step(next)];
      if (rows_ + n > most_) break;
      rows_ += n;
      first_ = std::min(first_, steps_.row(steps_.step(next)));
    }
    return true;
  }
  void part(int64_t k, int64_t begin, int64_t end) const {
    const int64_t t = steps_.step(k), n = steps_.sizes[t], old = steps_.continued(k), stop = whole_panels(end);
    for (int g = 0; g < gates_; ++g) {
      const auto& panels = hh_[static_cast<size_t>(g)];
      if (old > 0) panels.multiply(old, steps_.before(k, 0, out_, h0_), width_, begin, stop, hidden(g, 0), pitch_);
      if (old < n) panels.multiply(n - old, h0_.at(old), width_, begin, stop, hidden(g, old), pitch_);
    }
    for (int64_t r = 0; r < n; ++r) row(k, steps_.row(t) + r, r, begin, end - begin);
  }
  // The units of one row: `at` of all, r of the step.
  void row(int64_t k, int64_t at, int64_t r, int64_t begin, int64_t n) const {
    T *gate[4], *const out = out_.at(at) + begin;
    for (int g = 0; g < gates_; ++g) {
      gate[g] = hidden(g, r) + begin;
      T* const from_input = input(g, at) + begin;
      const T* const ih_bias = ih_bias_.data ? ih_bias_.data + g * width_ + begin : nullptr;
      const T* const hh_bias = hh_bias_.data ? hh_bias_.data + g * width_ + begin : nullptr;
      if (lstm_ || g < 2) {
        both_parts(from_input, ih_bias, hh_bias, gate[g], n);
      } else {  // the reset gate stands between what n gets from h and from the input
        if (ih_bias) add_to(ih_bias, from_input, n), add_to(hh_bias, gate[g], n);
        gate[3] = gate[2], gate[2] = from_input;
      }
    }
    const StepKernels& kernels = step_kernels<T>(lstm_);
    T* const before = lstm_ && !kept_.data ? last_c_.at(r) + begin : steps_.before(k, r, lstm_ ? cells_ : out_, lstm_ ? c0_ : h0_) + begin;
    if (!kept_.data) {
      void* lstm[] = {gate[0], gate[1], gate[2], gate[3], before, before, out};
      void* gru[] = {gate[0], gate[1], gate[2], gate[3], before, out};
      kernels.forward->run(lstm_ ? lstm : gru, nullptr, n, 0);
      return;
    }
    T* const kept = kept_.at(at) + begin;
    void* gru[] = {gate[0], gate[1], gate[2], gate[3], before, kept, kept + width_, kept + 2 * width_, kept + 3 * width_, out};
    if (!lstm_) return kernels.keeping->run(gru, nullptr, n, 0);
    void* lstm[] = {gate[0],
                    gate[1],
                    gate[2],
                    gate[3],
                    before,
                    kept,
                    kept + width_,
                    kept + 2 * width_,
                    kept + 3 * width_,
                    cells_.at(at) + begin,
                    tanh_.at(at) + begin,
                    out};
    kernels.keeping->run(lstm, nullptr, n, 0);
  }

  bool lstm_;
  int gates_;
  Steps steps_;
  Rows<T> x_, ih_bias_, hh_bias_, h0_, c0_, out_, last_h_, last_c_, kept_, cells_, tanh_;
  int64_t in_, width_, pitch_;
  std::vector<Panels<T>> ih_, hh_;  // of each gate: the transposed weights
  Memory<T> hidden_, input_;        // what h, and what a block of rows of x gives to each gate: (gate, row, unit)
  int64_t most_ = 0, first_ = 0, rows_ = 0;
};

template <class T>
class Backward {
 public:
  explicit Backward(const HostLoop& loop)
      : lstm_(loop.numbers[0] == 4),
        gates_(lstm_ ? 4 : 3),
        steps_(loop.arrays[1], loop.numbers[1] != 0),
        kept_(loop, 2),
        h0_(loop, 3),
        c0_(loop, 4),
        out_(loop, 5),
        cells_(loop, 6),
        tanh_(loop, 7),
        dout_(loop, 8),
        dh_(loop, 9),
        dc_(loop, 10),
        to_input_(loop, 11),
        to_hidden_(loop, lstm_ ? 11 : 12),
        width_(h0_.width),
        depth_(gates_ * width_),
        pitch_(whole_panels(width_)),
        hh_(loop.arrays[0].as<T>(), width_, 1, depth_, width_) {
    const int64_t batch = steps_.sizes[0];
    product_ = Memory<T>(batch * pitch_);
    for (int64_t r = 0; r < batch; ++r) std::memcpy(product_.get() + r * pitch_, dh_.at(r), static_cast<size_t>(width_) * sizeof(T));
    if (lstm_) return;
    carry_ = Memory<T>(batch * width_);
    std::memset(carry_.get(), 0, static_cast<size_t>(batch * width_) * sizeof(T));
  }
  void run() {
    // What the units of a step need of the step behind it are their own columns of the product.
    for (int64_t k = steps_.count; k >= 0; --k) {
      const auto n = static_cast<double>(steps_.sizes[steps_.step(std::max<int64_t>(k - 1, 0))]), units = static_cast<double>(width_);
      split(width_, n * units * (gates_ * units / 60 + 3), kUnits, [&](int64_t begin, int64_t end) {
        if (k < steps_.count) multiply(k, begin, end);
        for (int64_t r = 0; k > 0 && r < steps_.sizes[steps_.step(k - 1)]; ++r) row(k - 1, r, begin, end - begin);
      });
    }
    for (int64_t r = 0; r < steps_.sizes[0]; ++r)
      std::memcpy(dh_.at(r), product_.get() + r * pitch_, static_cast<size_t>(width_) * sizeof(T));
  }

 private:
  // The gradient of the state before step k.
  void multiply(int64_t k, int64_t begin, int64_t end) const {
    const int64_t t = steps_.step(k), n = steps_.sizes[t];
    hh_.multiply(n, to_hidden_.at(steps_.row(t)), depth_, begin, whole_panels(end), product_.get(), pitch_);
    for (int64_t r = 0; r < n && !lstm_; ++r) add_to(carry_.get() + r * width_ + begin, product_.get() + r * pitch_ + begin, end - begin);
  }
  void row(int64_t k, int64_t r, int64_t begin, int64_t n) const {
    const int64_t at = steps_.row(steps_.step(k)) + r;
    const uint64_t one[] = {one_bits<T>()};
    T *const kept = kept_.at(at) + begin, *const product = product_.get() + r * pitch_ + begin, *const to = to_input_.at(at) + begin;
    T *const dout = dout_.at(at) + begin, *const hidden = to_hidden_.at(at) + begin;
    const Kernel& kernel = *step_kernels<T>(lstm_).backward;
    T* const before = steps_.before(k, r, lstm_ ? cells_ : out_, lstm_ ? c0_ : h0_) + begin;
    if (lstm_) {
      T* const dc = dc_.at(r) + begin;
      void* all[] = {kept, kept + width_, kept + 2 * width_, kept + 3 * width_, before, tanh_.at(at) + begin, dout, product, dc,
                     to,   to + width_,   to + 2 * width_,   to + 3 * width_,   dc};
      return kernel.run(all, one, n, 0);
    }
    void* all[] = {kept,
                   kept + width_,
                   kept + 2 * width_,
                   kept + 3 * width_,
                   before,
                   dout,
                   product,
                   to,
                   to + width_,
                   to + 2 * width_,
                   hidden,
                   hidden + width_,
                   hidden + 2 * width_,
                   carry_.get() + r * width_ + begin};
    kernel.run(all, one, n, 0);
  }

  bool lstm_;
  int gates_;
  Steps steps_;
  Rows<T> kept_, h0_, c0_, out_, cells_, tanh_, dout_, dh_, dc_, to_input_, to_hidden_;
  int64_t width_, depth_, pitch_;
  Panels<T> hh_;
  Memory<T> product_;  // the gradient of h that later steps give, (row, unit)
  Memory<T> carry_;    // GRU: the part of it that passes by the gates
};

}  // namespace

void recurrent_steps(const HostLoop& loop) {
  with_type<float, double>(loop.arrays[0].dtype, [&]<class T>(T) { Forward<T>(loop).run(); });
}

void recurrent_gradients(const HostLoop& loop) {
  with_type<float, double>(loop.arrays[0].dtype, [&]<class T>(T) { Backward<T>(loop).run(); });
}

}  // namespace naru::cpu
