#include "ops/nn/recurrent_sequence.h"

#include <algorithm>
#include <iterator>

#include "autograd/graph/kept.h"
#include "autograd/history/history.h"
#include "core/autocast.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"

namespace naru::ops {
namespace {

using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;
using State = RecurrentState;

// The order of the steps, and where the rows of each begin.
struct StepOrder {
  Sizes sizes, first;
  bool reverse;
  StepOrder(const Sizes& s, bool backwards) : sizes(s), reverse(backwards) {
    int64_t row = 0;
    for (const int64_t n : s) first.push_back(row), row += n;
  }
  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
  int64_t step(int64_t k) const { return reverse ? count() - 1 - k : k; }
  int64_t rows(int64_t t) const { return sizes[static_cast<size_t>(t)]; }
  Tensor of(const Tensor& all, int64_t t) const { return all.narrow(0, first[static_cast<size_t>(t)], rows(t)); }
};

Tensor gate_of(const Tensor& t, int64_t k, int64_t width) { return t.narrow(-1, k * width, width); }
// `whole` with its first rows replaced by `rows`.
Tensor with_rows(const Tensor& rows, const Tensor& whole) {
  const int64_t n = rows.size(0), all = whole.size(0);
  return n == all ? rows : cat({rows, whole.narrow(0, n, all - n)});
}

// What a sequence leaves for backward, row by row.
struct KeptRows {
  Tensor gates;                 // (R, 4 H)
  Tensor before, cells_before;  // the states before each step, (R, H)
  Tensor tanh_cells;            // (R, H)
};
struct ForwardSteps {
  RecurrentRun run;
  Tensor gates, cells, tanh_cells;
};

// The steps one by one, in operators. They are differentiable if grad mode is on.
ForwardSteps by_operators(Recurrent kind, const Tensor& from_input, const StepOrder& order, const State& initial,
                          const RecurrentWeights& w) {
  const bool lstm = kind == Recurrent::Lstm;
  const int64_t width = w.hh.size(1);
  const auto count = static_cast<size_t>(order.count());
  Tensors outs(count), cells(count), tanhs(count), gates[4];
  for (Tensors& g : gates) g.resize(count);
  Tensor h = initial.h, c = initial.c;
  for (int64_t k = 0; k < order.count(); ++k) {
    const int64_t t = order.step(k), n = order.rows(t);
    const auto at = static_cast<size_t>(t);
    const Tensor from = order.of(from_input, t), before = h.narrow(0, 0, n), hidden = linear(before, w.hh, w.b_hh);
    if (lstm) {
      const Tensor sum = from + hidden;
      for (int64_t g = 0; g < 4; ++g) gates[g][at] = g == 2 ? tanh(gate_of(sum, g, width)) : sigmoid(gate_of(sum, g, width));
      cells[at] = gates[1][at] * c.narrow(0, 0, n) + gates[0][at] * gates[2][at];
      tanhs[at] = tanh(cells[at]);
      outs[at] = gates[3][at] * tanhs[at];
      c = with_rows(cells[at], c);
    } else {
      for (int64_t g = 0; g < 2; ++g) gates[g][at] = sigmoid(gate_of(from, g, width) + gate_of(hidden, g, width));
      gates[3][at] = gate_of(hidden, 2, width);
      gates[2][at] = tanh(gate_of(from, 2, width) + gates[0][at] * gates[3][at]);
      outs[at] = gates[2][at] + gates[1][at] * (before - gates[2][at]);
    }
    h = with_rows(outs[at], h);
  }
  Tensors joined;
  for (const Tensors& g : gates) joined.push_back(cat(g));
  return {{cat(outs), {h, c}}, cat(joined, -1), lstm ? cat(cells) : Tensor(), lstm ? cat(tanhs) : Tensor()};
}

// The same on the cpu, in one loop. keeps: what backward needs is kept.
ForwardSteps by_loop(Recurrent kind, const Tensor& given, const StepOrder& order, const State& initial, const RecurrentWeights& w,
                     bool keeps) {
  const bool lstm = kind == Recurrent::Lstm;
  const int64_t width = w.hh.size(1), rows = given.size(0);
  const char* op = lstm ? "lstm" : "gru";
  const auto made = [&](const Dims& sizes) { return make_result(sizes, given.dtype(), given.device(), op); };
  const Dims state = {order.sizes[0], width}, all = {rows, width};
  ForwardSteps f;
  f.run.out = made(all);
  f.run.last.h = made(state);
  if (lstm) f.run.last.c = made(state);
  if (keeps) f.gates = made({rows, 4 * width});
  if (keeps && lstm) f.cells = made(all), f.tanh_cells = made(all);
  const auto dense = [](const Tensor& t) { return t.defined() ? t.contiguous() : t; };
  const Tensor sizes = tensor(order.sizes), x = dense(given), ih = dense(w.ih), hh = dense(w.hh), b_ih = dense(w.b_ih),
               b_hh = dense(w.b_hh);
  const Tensor h0 = dense(initial.h), c0 = dense(initial.c);
  run_host_loop(ir::HostLoop::Kind::Recurrent, {&x, &ih, &hh, &b_ih, &b_hh, &sizes, &h0, &c0},
                {&f.run.out, &f.run.last.h, &f.run.last.c, &f.gates, &f.cells, &f.tanh_cells}, {recurrent_gates(kind), order.reverse});
  return f;
}

bool in_loop(const Tensor& t) {
  const NoGrad off;
  return (t.dtype() == DType::F32 || t.dtype() == DType::F64) && can_use_host_loop({&t});
}

// The state before each step, row by row.
Tensor before_steps(const Tensor& all, const Tensor& initial, const StepOrder& order) {
  if (order.sizes.front() == order.sizes.back()) {
    const int64_t batch = order.sizes[0], others = all.size(0) - batch;
    return order.reverse ? cat({all.narrow(0, batch, others), initial}) : cat({initial, all.narrow(0, 0, others)});
  }
  Tensors parts(static_cast<size_t>(order.count()));
  for (int64_t k = 0; k < order.count(); ++k) {
    const int64_t t = order.step(k), n = order.rows(t), old = k == 0 ? 0 : std::min(n, order.rows(order.step(k - 1)));
    const Tensor fresh = initial.narrow(0, old, n - old);
    Tensor& to = parts[static_cast<size_t>(t)];
    to = old == 0 ? fresh : all.narrow(0, order.first[static_cast<size_t>(order.step(k - 1))], old);
    if (old > 0 && old < n) to = cat({to, fresh});
  }
  return cat(parts);
}

struct SequenceGradients {
  Tensor to_input, to_hidden;  // of what the input and the hidden state give to the gates, (R, G H)
  State first;                 // of the initial state
};

// The gradients that one step of an LSTM gives: of the gates before their activations, and of the cell before.
std::pair<Tensor, Tensor> lstm_gradients(const Tensor& gates, const Tensor& cell, const Tensor& t, const Tensor& dh, const Tensor& dc) {
  const int64_t width = cell.size(1);
  const Tensor i = gate_of(gates, 0, width), f = gate_of(gates, 1, width), g = gate_of(gates, 2, width), o = gate_of(gates, 3, width);
  const Tensor d = dc + dh * o * (1 - t * t);
  return {cat({d * g * i * (1 - i), d * cell * f * (1 - f), d * i * (1 - g * g), dh * t * o * (1 - o)}, -1), d * f};
}

// Those of a GRU: of what the input and of what the hidden state gives to the gates, and of the hidden state where it passes by them.
std::array<Tensor, 3> gru_gradients(const Tensor& gates, const Tensor& before, const Tensor& dh) {
  const int64_t width = before.size(1);
  const Tensor r = gate_of(gates, 0, width), z = gate_of(gates, 1, width), n = gate_of(gates, 2, width), hidden = gate_of(gates, 3, width);
  const Tensor dn = dh * (1 - z) * (1 - n * n), dz = dh * (before - n) * z * (1 - z), dr = dn * hidden * r * (1 - r);
  return {cat({dr, dz, dn}, -1), cat({dr, dz, dn * r}, -1), dh * z};
}

SequenceGradients gradients_by_operators(Recurrent kind, const Tensor& hh, const StepOrder& order, const KeptRows& kept, const Tensor& dout,
                                         State last) {
  Tensors to_input(static_cast<size_t>(order.count())), to_hidden(to_input.size());
  for (int64_t k = order.count() - 1; k >= 0; --k) {
    const int64_t t = order.step(k), n = order.rows(t);
    const auto at = static_cast<size_t>(t);
    const Tensor dh = order.of(dout, t) + last.h.narrow(0, 0, n), gates = order.of(kept.gates, t);
    if (kind == Recurrent::Lstm) {
      auto [gate, cell] = lstm_gradients(gates, order.of(kept.cells_before, t), order.of(kept.tanh_cells, t), dh, last.c.narrow(0, 0, n));
      to_input[at] = gate;
      last.c = with_rows(cell, last.c);
      last.h = with_rows(mm(gate, hh), last.h);
    } else {
      auto [input, hidden, past] = gru_gradients(gates, order.of(kept.before, t), dh);
      to_input[at] = input, to_hidden[at] = hidden;
      last.h = with_rows(past + mm(hidden, hh), last.h);
    }
  }
  const Tensor all = cat(to_input);
  return {all, kind == Recurrent::Lstm ? all : cat(to_hidden), last};
}

struct SavedSequence {
  Tensor x, w_ih, w_hh, b_ih, b_hh, h0, c0, out, gates, cells, tanh_cells;
  explicit SavedSequence(const Tensors& t)
      : x(t[0]),
        w_ih(t[1]),
        w_hh(t[2]),
        b_ih(t[3]),
        b_hh(t[4]),
        h0(t[5]),
        c0(t[6]),
        out(t[10]),
        gates(t[7]),
        cells(t[8]),
        tanh_cells(t[9]) {}
};

SequenceGradients gradients_by_loop(Recurrent kind, const StepOrder& order, const SavedSequence& s, const Tensor& given,
                                    const State& last) {
  const bool lstm = kind == Recurrent::Lstm;
  const auto made = [&](int64_t rows, int64_t width) { return make_result({rows, width}, s.out.dtype(), s.out.device(), "backward"); };
  const int64_t rows = s.out.size(0), gates = s.w_hh.size(0), batch = s.h0.size(0), width = s.h0.size(1);
  SequenceGradients g{made(rows, gates), lstm ? Tensor() : made(rows, gates), {made(batch, width), lstm ? made(batch, width) : Tensor()}};
  g.first.h.copy_(last.h);
  if (lstm) g.first.c.copy_(last.c);
  const Tensor sizes = tensor(order.sizes), hh = s.w_hh.contiguous(), dout = given.contiguous(), out = s.out.contiguous();
  const Tensor h0 = s.h0.contiguous(), c0 = lstm ? s.c0.contiguous() : Tensor();
  run_host_loop(ir::HostLoop::Kind::RecurrentGradient, {&hh, &sizes, &s.gates, &h0, &c0, &out, &s.cells, &s.tanh_cells, &dout},
                {&g.first.h, &g.first.c, &g.to_input, &g.to_hidden}, {recurrent_gates(kind), order.reverse});
  if (lstm) g.to_hidden = g.to_input;
  return g;
}

// The gradients of x, w_ih, w_hh, b_ih, b_hh, h0, c0. Weights get theirs by one product over all steps.
Tensors sequence_gradients(Recurrent kind, const StepOrder& order, const Tensors& grad, const Tensors& saved, autograd::Needed needed) {
  SavedSequence s(saved);
  const bool lstm = kind == Recurrent::Lstm;
  if (grad_enabled()) {  // for gradients of gradients, with a history that leads to the inputs
    ForwardSteps f = by_operators(kind, linear(s.x, s.w_ih, s.b_ih), order, {s.h0, s.c0}, {s.w_ih, s.w_hh, s.b_ih, s.b_hh, {}});
    s.out = f.run.out, s.gates = f.gates, s.cells = f.cells, s.tanh_cells = f.tanh_cells;
  }
  const auto or_zeros = [](const Tensor& t, const Tensor& like) { return t.defined() ? t : zeros_like(like); };
  const Tensor dout = or_zeros(grad[0], s.out);
  const State last{or_zeros(grad[1], s.h0), lstm ? or_zeros(grad[2], s.c0) : Tensor()};
  const bool loop = !grad_enabled() && in_loop(s.out);
  const Tensor before = needed[2] || !loop ? before_steps(s.out, s.h0, order) : Tensor();
  const SequenceGradients g =
      loop ? gradients_by_loop(kind, order, s, dout, last)
           : gradients_by_operators(kind, s.w_hh, order,
                                    {s.gates, before, lstm ? before_steps(s.cells, s.c0, order) : Tensor(), s.tanh_cells}, dout, last);
  Tensors out(7);
  if (needed[0]) out[0] = mm(g.to_input, s.w_ih);
  if (needed[1]) out[1] = mm(g.to_input.t(), s.x);
  if (needed[2]) out[2] = mm(g.to_hidden.t(), before);
  if (needed[3]) out[3] = sum(g.to_input, Dims{0});
  if (needed[4]) out[4] = lstm && needed[3] ? out[3].clone() : sum(g.to_hidden, Dims{0});
  if (needed[5]) out[5] = g.first.h;
  if (needed[6]) out[6] = g.first.c;
  return out;
}

}  // namespace

bool takes_sequence(Recurrent kind, const Tensor& x, const Sizes& sizes, const State& initial, const RecurrentWeights& w) {
  constexpr int64_t kLeastRows = 4;  // fewer are not worth packing weights for
  const bool lstm = kind == Recurrent::Lstm;
  if ((!lstm && kind != Recurrent::Gru) || w.hr.defined() || sizes.size() < 2 || x.size(0) < kLeastRows) return false;
  if (autocast::anywhere() || autograd::tangents_carried || !in_programs(x.dtype()) || !is_floating(x.dtype())) return false;
  const auto fits = [&](const Tensor& t, const Dims& shape) {
    return t.defined() && t.sizes() == shape && t.dtype() == x.dtype() && t.device() == x.device() && product(shape) > 0;
  };
  if (w.hh.dim() != 2 || x.numel() == 0 || w.b_ih.defined() != w.b_hh.defined()) return false;
  const int64_t width = w.hh.size(1), rows = recurrent_gates(kind) * width;
  for (const Tensor* bias : {&w.b_ih, &w.b_hh})
    if (bias->defined() && !fits(*bias, {rows})) return false;
  return fits(w.ih, {rows, x.size(1)}) && fits(w.hh, {rows, width}) && fits(initial.h, {sizes[0], width}) &&
         (!lstm || fits(initial.c, {sizes[0], width}));
}

RecurrentRun recurrent_sequence(Recurrent kind, const Tensor& x, const Sizes& sizes, const State& initial, const RecurrentWeights& w,
                                bool reverse) {
  const bool lstm = kind == Recurrent::Lstm;
  const StepOrder order(sizes, reverse);
  const std::initializer_list<const Tensor*> inputs = {&x, &w.ih, &w.hh, &w.b_ih, &w.b_hh, &initial.h, &initial.c};
  const bool keeps = autograd::recording(inputs);
  ForwardSteps f;
  {
    const NoGrad off;
    f = in_loop(x) ? by_loop(kind, x, order, initial, w, keeps) : by_operators(kind, linear(x, w.ih, w.b_ih), order, initial, w);
  }
  if (!keeps) return f.run;
  const auto backward = [kind, order](const Tensors& grad, const Tensors& saved, autograd::Needed needed) {
    return sequence_gradients(kind, order, grad, saved, needed);
  };
  const std::initializer_list<const Tensor*> saves = {&x,         &w.ih,      &w.hh,    &w.b_ih,  &w.b_hh,
                                                      &initial.h, &initial.c, &f.gates, &f.cells, &f.tanh_cells};
  if (lstm)
    autograd::record_all({&f.run.out, &f.run.last.h, &f.run.last.c}, "LstmBackward0", inputs, saves, backward, 1);
  else
    autograd::record_all({&f.run.out, &f.run.last.h}, "GruBackward0", inputs, saves, backward, 1);
  return f.run;
}

}  // namespace naru::ops
