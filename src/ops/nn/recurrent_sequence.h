// One direction of a recurrent layer over a whole sequence, as one node of the graph.
//
// Rows: the batch of each step, step by step, sizes[t] rows at step t (which do not rise). R: all rows, B = sizes[0], G: gates of the kind.
// Kept for backward are four values a unit (LSTM: i, f, g, o; GRU: r, z, n, and what the hidden state gives to n).
//
// The cpu runs the steps in host loops, which have the bits of the operators that other devices take. Their arrays:
//   Recurrent          x (R, I), w_ih (G H, I), w_hh (G H, H), b_ih, b_hh (G H) or none, sizes (T), h0 (B, H), c0 (B, H) or none; out (R, H), the
//                      last h and c (B, H), and for backward, else none: kept (R, 4 H), cells (R, H), tanh of the cells (R, H)
//   RecurrentGradient  w_hh, sizes, kept, h0, c0, out, cells, tanh of the cells, gradient of out (R, H); dh and dc (B, H), which hold the
//                      gradients of the last states and receive those of the first, gradients of what the input and the hidden state gave to the
//                      gates (R, G H; the second none if it is the same)
// numbers: G (4: LSTM, 3: GRU); 1 in reverse.
#pragma once

#include <vector>

#include "ops/nn/recurrent.h"

namespace naru::ops {

struct RecurrentRun {
  Tensor out;
  RecurrentState last;
};

// True if recurrent_sequence runs this direction: an LSTM or a GRU without projections whose tensors fit, more than one step, no autocast, no
// forward derivatives.
bool takes_sequence(Recurrent kind, const Tensor& x, const std::vector<int64_t>& sizes, const RecurrentState& initial,
                    const RecurrentWeights& w);
// x (R, in).
RecurrentRun recurrent_sequence(Recurrent kind, const Tensor& x, const std::vector<int64_t>& sizes, const RecurrentState& initial,
                                const RecurrentWeights& w, bool reverse);

}  // namespace naru::ops
