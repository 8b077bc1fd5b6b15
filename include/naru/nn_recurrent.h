// Recurrent layers and cells as modules, and packed sequences. What they compute: naru/recurrent.h.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/module.h"
#include "naru/recurrent.h"
#include "naru/standard.h"

namespace naru::nn {
namespace utils::rnn {

// Sequences of several lengths without their padding, the longest first: the first element of all, then the second of those that have one ...
struct PackedSequence {
  Tensor data;                              // (sum of lengths, ...)
  Tensor batch_sizes;                       // (longest length) on cpu: how many sequences have an element at each step
  Tensor sorted_indices, unsorted_indices;  // how the sequences were sorted, and back; undefined where they were given so
  PackedSequence to(Device device) const;
  // What hooks on modules see.
  template <class F>
  void each_tensor(const F& f) {
    f(data);
  }
};

// input (T, N, ...) or, batch_first, (N, T, ...); lengths (N) of int64 on cpu. enforce_sorted: they fall already. RuntimeError for lengths that do not
// fall though they must, are below 1, or are not N.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false, bool enforce_sorted = true);
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);
// The padded tensor, total_length long (the longest sequence, unless given), and the lengths. ValueError for a total_length below that.
std::pair<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false, double padding_value = 0,
                                              std::optional<int64_t> total_length = {});
std::vector<Tensor> unpack_sequence(const PackedSequence& sequence);
// Where each number stands in a permutation (1-D, int64).
Tensor invert_permutation(const Tensor& permutation);

// What the packing does, of lengths that fall: (data, batch_sizes), and back: (padded, lengths).
std::pair<Tensor, Tensor> pack_rows(const Tensor& input, const Tensor& lengths, bool batch_first);
std::pair<Tensor, Tensor> pad_rows(const Tensor& data, const Tensor& batch_sizes, bool batch_first, double padding_value,
                                   std::optional<int64_t> total_length);

}  // namespace utils::rnn

struct RnnOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // between layers, in training
  bool bidirectional = false;
  int64_t proj_size = 0;  // LSTM: what outputs and hidden states are narrowed to
};

// Base of RNN, LSTM and GRU. Parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0) and so on, "_reverse" behind those of the other
// direction; they start uniform in ± 1 / sqrt(hidden_size). ValueError for sizes below 1, a dropout outside [0, 1], a projection of another module.
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
  // (outputs, last hidden state); hx undefined: zeros.
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
  using State = std::pair<Tensor, Tensor>;  // hidden state, cell
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

// --- one step: input (N, I) or (I), hidden (N, H) or (H), zeros where undefined
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
