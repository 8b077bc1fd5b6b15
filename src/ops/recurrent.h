// The step of recurrent cells, which cells and layers share.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

enum class Recurrent { Tanh, Relu, Lstm, Gru };

struct RecurrentState {
  Tensor h, c;  // c: of an LSTM
};
struct RecurrentWeights {
  Tensor ih, hh, b_ih, b_hh, hr;
};

// Gates by the kind.
constexpr int64_t recurrent_gates(Recurrent kind) { return kind == Recurrent::Lstm ? 4 : kind == Recurrent::Gru ? 3 : 1; }

// The state after a step, whose input has been multiplied by w.ih already (and w.b_ih added): (N, gates · H).
RecurrentState recurrent_step(Recurrent kind, const Tensor& from_input, const RecurrentState& state, const RecurrentWeights& w);

}  // namespace naru::ops
