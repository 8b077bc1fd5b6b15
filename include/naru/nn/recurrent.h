// Recurrent layers and cells as modules, and packed sequences. Formulas: naru/ops/recurrent.h.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/nn/module.h"
#include "naru/ops/recurrent.h"
#include "naru/standard.h"

namespace naru::nn {
namespace utils::rnn {

// Sequences of several lengths without padding, sorted by decreasing length: the first element of each, then the second of each that has
// one ...
struct PackedSequence {
  Tensor data;                              // (sum of lengths, ...)
  Tensor batch_sizes;                       // (longest length) on cpu: number of sequences that have an element at each step
  Tensor sorted_indices, unsorted_indices;  // the sorting permutation and its inverse; undefined if already sorted
  PackedSequence to(Device device) const;
  // Lets hooks on modules visit the tensors.
  template <class F>
  void each_tensor(const F& f) {
    f(data);
  }
};

// input (T, N, ...) or, with batch_first, (N, T, ...); lengths (N) int64 on cpu. enforce_sorted: lengths must be non-increasing. Throws
// RuntimeError if they are not, if one is below 1, or if there are not N.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false, bool enforce_sorted = true);
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);
// The padded tensor, of length total_length (default: the longest sequence), and the lengths. Throws ValueError if total_length is too
// small.
std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false, double padding_value = 0,
                                              std::optional<int64_t> total_length = {});
std::vector<Tensor> unpack_sequence(const PackedSequence& sequence);
// The inverse of a permutation (1-D, int64).
Tensor invert_permutation(const Tensor& permutation);

// The implementation, for non-increasing lengths: (data, batch_sizes), and back: (padded, lengths).
std::pair<Tensor, Tensor> pack_rows(const Tensor& input, const Tensor& lengths, bool batch_first);
std::pair<Tensor, Tensor> pad_rows(const Tensor& data, const Tensor& batch_sizes, bool batch_first, double padding_value,
                                   std::optional<int64_t> total_length);

}  // namespace utils::rnn

struct RnnOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // between layers, in training
  bool bidirectional = false;
  int64_t proj_size = 0;  // LSTM: projected size of outputs and hidden states
};

// Base class of RNN, LSTM and GRU. Parameters are named weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0) and so on, with
// the suffix "_reverse" for the reverse direction; initialized uniformly in ± 1 / sqrt(hidden_size). Throws ValueError for sizes below 1, a
// dropout outside [0, 1], or proj_size for a module other than LSTM.
class RecurrentBase : public Module {
 public:
  void reset_parameters();
  std::string details() const override;
  std::vector<Tensor> flat_weights() const { return parameters(false); }

 protected:
  RecurrentBase(int64_t gates, int64_t input_size, int64_t hidden_size, const RnnOptions& o, const Options& options);
  RecurrentOptions run_options() const;
  int64_t input_size_, hidden_size_;
  RnnOptions options_;
};

class RNN : public RecurrentBase {
 public:
  // nonlinearity: "tanh" or "relu".
  RNN(int64_t input_size, int64_t hidden_size, const RnnOptions& o = {}, std::string nonlinearity = "tanh", const Options& options = {});
  // Returns (outputs, last hidden state). An undefined hx means zeros.
  using Module::forward;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::tuple<utils::rnn::PackedSequence, Tensor> forward(const utils::rnn::PackedSequence& input, const Tensor& hx = {});
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& hx = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> operator()(const utils::rnn::PackedSequence& input, const Tensor& hx = {});
  std::string name() const override { return "RNN"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  std::string nonlinearity_;
};
class GRU : public RecurrentBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RnnOptions& o = {}, const Options& options = {});
  using Module::forward;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::tuple<utils::rnn::PackedSequence, Tensor> forward(const utils::rnn::PackedSequence& input, const Tensor& hx = {});
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& hx = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> operator()(const utils::rnn::PackedSequence& input, const Tensor& hx = {});
  std::string name() const override { return "GRU"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};
class LSTM : public RecurrentBase {
 public:
  using State = std::pair<Tensor, Tensor>;  // hidden state, cell state
  LSTM(int64_t input_size, int64_t hidden_size, const RnnOptions& o = {}, const Options& options = {});
  using Module::forward;
  std::tuple<Tensor, State> forward(const Tensor& input, const State& hx);
  std::tuple<utils::rnn::PackedSequence, State> forward(const utils::rnn::PackedSequence& input, const State& hx = {});
  std::tuple<Tensor, State> operator()(const Tensor& input, const State& hx = {});
  std::tuple<utils::rnn::PackedSequence, State> operator()(const utils::rnn::PackedSequence& input, const State& hx = {});
  std::string name() const override { return "LSTM"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};

// --- one step: input (N, I) or (I), hidden (N, H) or (H); undefined means zeros
class RecurrentCell : public Module {
 public:
  void reset_parameters();
  std::string details() const override;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCell(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias, const Options& options);
  Tensor hidden_or_zeros(const Tensor& input, const Tensor& hx) const;
};
class RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true, std::string nonlinearity = "tanh", const Options& options = {});
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& hx);
  Tensor operator()(const Tensor& input, const Tensor& hx = {});
  std::string name() const override { return "RNNCell"; }

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  std::string nonlinearity_;
};
class GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true, const Options& options = {});
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& hx);
  Tensor operator()(const Tensor& input, const Tensor& hx = {});
  std::string name() const override { return "GRUCell"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};
class LSTMCell : public RecurrentCell {
 public:
  using State = std::pair<Tensor, Tensor>;
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true, const Options& options = {});
  using Module::forward;
  State forward(const Tensor& input, const State& hx);
  State operator()(const Tensor& input, const State& hx = {});
  std::string name() const override { return "LSTMCell"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};

}  // namespace naru::nn
