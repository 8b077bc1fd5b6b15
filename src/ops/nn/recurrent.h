// One time step of recurrent cells, shared by cells and layers.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

enum class Recurrent { Tanh, Relu, Lstm, Gru };

struct RecurrentState {
  Tensor h, c;  // c: LSTM only
};
struct RecurrentWeights {
  Tensor ih, hh, b_ih, b_hh, hr;
};

// Number of gates of each kind.
constexpr int64_t recurrent_gates(Recurrent kind) { return kind == Recurrent::Lstm ? 4 : kind == Recurrent::Gru ? 3 : 1; }

// The state after one step. from_input: the input already multiplied by w.ih, with w.b_ih added: (N, gates * H).
RecurrentState recurrent_step(Recurrent kind, const Tensor& from_input, const RecurrentState& state, const RecurrentWeights& w);

}  // namespace naru::ops
