// Recurrent networks as functions: single cell steps, and layers over sequences. Modules and packed sequences: naru/nn/recurrent.h.
//
// Weights of a cell with n gates (RNN 1; LSTM 4: input, forget, cell, output; GRU 3: reset, update, new): w_ih (n H, I), w_hh (n H, H), and
// biases b_ih, b_hh (n H), undefined if there are none. The formulas are PyTorch's:
//   rnn   h' = f(w_ih x + b_ih + w_hh h + b_hh), f = tanh or relu
//   LSTM  c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')           (Hochreiter and Schmidhuber, 1997)
//   GRU   n = tanh(n_x + sigmoid(r) n_h), h' = n + sigmoid(z) (h - n)                (Cho et al., 2014; the reset gate applies to b_hh too)
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru {

// --- one step: input (N, I) and hidden (N, H), or without N. Throw RuntimeError for sizes that do not fit
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih = {},
                     const Tensor& b_hh = {});
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih = {},
                     const Tensor& b_hh = {});
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih = {},
                const Tensor& b_hh = {});
// hx and the result: (hidden state, cell state).
std::pair<Tensor, Tensor> lstm_cell(const Tensor& input, const std::pair<Tensor, Tensor>& hx, const Tensor& w_ih, const Tensor& w_hh,
                                    const Tensor& b_ih = {}, const Tensor& b_hh = {});

// --- sequences
struct RecurrentOptions {
  bool biases = true;
  int64_t num_layers = 1;
  double dropout = 0;  // between layers, if training
  bool training = false;
  bool bidirectional = false;
  bool batch_first = false;
};
// input (T, N, I), or (N, T, I) with batch_first, or (T, I) for a single sequence; hx (layers · directions, N, H), without N for a single
// sequence, undefined for zeros. params: for each direction of each layer w_ih, w_hh and the biases (and w_hr (P, H) for an LSTM with
// projections, whose outputs and hidden states have width P). Results: the last layer's outputs (T, N, directions · H), and the final
// states, shaped like hx. Throw ValueError and RuntimeError with PyTorch's texts for shapes and dtypes that do not fit.
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, const std::vector<Tensor>& params,
                                    const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, const std::vector<Tensor>& params,
                                    const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, const std::vector<Tensor>& params, const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const std::pair<Tensor, Tensor>& hx, const std::vector<Tensor>& params,
                                        const RecurrentOptions& o = {});
// For packed sequences: data (sum of lengths, I); batch_sizes (T) on cpu, non-increasing: the number of sequences active at each step.
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const std::vector<Tensor>& params,
                                    const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const std::vector<Tensor>& params,
                                    const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const std::vector<Tensor>& params,
                               const RecurrentOptions& o = {});
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, const std::pair<Tensor, Tensor>& hx,
                                        const std::vector<Tensor>& params, const RecurrentOptions& o = {});

}  // namespace naru
