// Recurrent cells. For LSTM and GRU, everything after the matrix products is one node; its backward recomputes the gates from its inputs.
#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/recurrent.h"
#include "ops/nn/recurrent.h"
#include "ops/tensor/common.h"

namespace naru {
namespace ops {
namespace {

using autograd::record;
using Tensors = std::vector<Tensor>;

// Part k of `count` equal parts of the last dimension.
Tensor part(const Tensor& t, int64_t k, int64_t count) {
  const int64_t n = t.size(-1) / count;
  return t.narrow(-1, k * n, n);
}

struct LstmGates {
  explicit LstmGates(const Tensor& before)
      : i(sigmoid(part(before, 0, 4))), f(sigmoid(part(before, 1, 4))), g(tanh(part(before, 2, 4))), o(sigmoid(part(before, 3, 4))) {}
  Tensor i, f, g, o;
};

RecurrentState lstm_step(const Tensor& before, const Tensor& cell) {
  Tensor h, c;
  {
    const NoGrad off;
    const LstmGates s(before);
    c = s.f * cell + s.i * s.g;
    h = s.o * tanh(c);
  }
  autograd::record_all({&h, &c}, "LstmCellBackward0", {&before, &cell}, {&before, &cell},
                       [](const Tensors& grad, const Tensors& saved, autograd::Needed needed) -> Tensors {
                         const LstmGates s(saved[0]);
                         const Tensor& cell = saved[1];
                         const Tensor t = tanh(s.f * cell + s.i * s.g);
                         Tensor dc = grad[1], d_o;
                         if (grad[0].defined()) {
                           const Tensor through = grad[0] * s.o * (1 - t * t);
                           dc = dc.defined() ? dc + through : through;
                           if (needed[0]) d_o = grad[0] * t * s.o * (1 - s.o);
                         } else if (needed[0]) {
                           d_o = zeros_like(s.o);
                         }
                         Tensor before;
                         if (needed[0])
                           before = cat({dc * s.g * s.i * (1 - s.i), dc * cell * s.f * (1 - s.f), dc * s.i * (1 - s.g * s.g), d_o}, -1);
                         return {before, needed[1] ? dc * s.f : Tensor()};
                       });
  return {h, c};
}

struct GruGates {
  GruGates(const Tensor& x, const Tensor& h)
      : r(sigmoid(part(x, 0, 3) + part(h, 0, 3))),
        z(sigmoid(part(x, 1, 3) + part(h, 1, 3))),
        n_h(part(h, 2, 3)),
        n(tanh(part(x, 2, 3) + r * n_h)) {}
  Tensor r, z, n_h, n;
};

// from_input and from_hidden: the contributions of input and hidden state to the gates.
Tensor gru_step(const Tensor& from_input, const Tensor& from_hidden, const Tensor& hidden) {
  Tensor h;
  {
    const NoGrad off;
    const GruGates s(from_input, from_hidden);
    h = s.n + s.z * (hidden - s.n);
  }
  return record(h, "GruCellBackward0", {&from_input, &from_hidden, &hidden}, {&from_input, &from_hidden, &hidden},
                [](const Tensors& grad, const Tensors& saved, autograd::Needed needed) -> Tensors {
                  const GruGates s(saved[0], saved[1]);
                  const Tensor &g = grad[0], &hidden = saved[2];
                  const Tensor dn = g * (1 - s.z) * (1 - s.n * s.n), dz = g * (hidden - s.n) * s.z * (1 - s.z);
                  const Tensor dr = dn * s.n_h * s.r * (1 - s.r);
                  return {needed[0] ? cat({dr, dz, dn}, -1) : Tensor(), needed[1] ? cat({dr, dz, dn * s.r}, -1) : Tensor(),
                          needed[2] ? g * s.z : Tensor()};
                });
}

}  // namespace

RecurrentState recurrent_step(Recurrent kind, const Tensor& from_input, const RecurrentState& state, const RecurrentWeights& w) {
  const Tensor from_hidden = linear(state.h, w.hh, w.b_hh);
  switch (kind) {
    case Recurrent::Tanh:
      return {tanh(from_input + from_hidden), {}};
    case Recurrent::Relu:
      return {relu(from_input + from_hidden), {}};
    case Recurrent::Gru:
      return {gru_step(from_input, from_hidden, state.h), {}};
    case Recurrent::Lstm:
      break;
  }
  RecurrentState next = lstm_step(from_input + from_hidden, state.c);
  if (w.hr.defined()) next.h = linear(next.h, w.hr);
  return next;
}

}  // namespace ops

namespace {

void check_hidden(const Tensor& input, const Tensor& hidden, int64_t width, const char* name) {
  if (hidden.dim() != 2) throw RuntimeError("Expected 2D {} (batch x hidden_size), but got {}D tensor", name, hidden.dim());
  if (hidden.size(0) != input.size(0))
    throw RuntimeError("Input batch size {} doesn't match {} batch size {}", input.size(0), name, hidden.size(0));
  if (hidden.size(1) != width) throw RuntimeError("{} has inconsistent hidden_size: got {}, expected {}", name, hidden.size(1), width);
}

ops::RecurrentState cell(ops::Recurrent kind, const char* op, const Tensor& input, const ops::RecurrentState& state,
                         const ops::RecurrentWeights& w) {
  ops::require_defined(input, op, "input");
  ops::require_defined(w.ih, op, "w_ih");
  ops::require_defined(w.hh, op, "w_hh");
  ops::require_defined(state.h, op, "hx");
  if (kind == ops::Recurrent::Lstm) ops::require_defined(state.c, op, "the cell");
  if (input.dim() == 1) {
    const auto row = [](const Tensor& t) { return t.defined() && t.dim() == 1 ? t.unsqueeze(0) : t; };
    const auto first = [](const Tensor& t) { return t.defined() ? t.squeeze(0) : t; };
    const ops::RecurrentState next = cell(kind, op, row(input), {row(state.h), row(state.c)}, w);
    return {first(next.h), first(next.c)};
  }
  if (input.dim() != 2) throw RuntimeError("{}: wanted an input of 1 or 2 dimensions, got shape {}", op, input.sizes().str());
  if (w.ih.dim() != 2 || w.hh.dim() != 2 || w.hh.size(0) != w.ih.size(0) || w.hh.size(1) * ops::recurrent_gates(kind) != w.hh.size(0))
    throw RuntimeError("{}: wanted weights of {} hidden_size rows and input_size and hidden_size columns, got shapes {} and {}", op,
                       ops::recurrent_gates(kind), w.ih.sizes().str(), w.hh.sizes().str());
  if (input.size(1) != w.ih.size(1))
    throw RuntimeError("input has inconsistent input_size: got {} expected {}", input.size(1), w.ih.size(1));
  check_hidden(input, state.h, w.hh.size(1), "hidden0");
  if (kind == ops::Recurrent::Lstm) check_hidden(input, state.c, w.hh.size(1), "hidden1");
  return ops::recurrent_step(kind, linear(input, w.ih, w.b_ih), state, w);
}

}  // namespace

Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                     const Tensor& b_hh) {
  return cell(ops::Recurrent::Tanh, "rnn_tanh_cell", input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                     const Tensor& b_hh) {
  return cell(ops::Recurrent::Relu, "rnn_relu_cell", input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  return cell(ops::Recurrent::Gru, "gru_cell", input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
std::pair<Tensor, Tensor> lstm_cell(const Tensor& input, const std::pair<Tensor, Tensor>& hx, const Tensor& w_ih, const Tensor& w_hh,
                                    const Tensor& b_ih, const Tensor& b_hh) {
  ops::RecurrentState next = cell(ops::Recurrent::Lstm, "lstm_cell", input, {hx.first, hx.second}, {w_ih, w_hh, b_ih, b_hh, {}});
  return {std::move(next.h), std::move(next.c)};
}

}  // namespace naru
