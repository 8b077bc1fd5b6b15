// Modules for recurrent layers and cells.
#include <fmt/format.h>

#include <cmath>

#include "naru/nn/init.h"
#include "naru/nn/recurrent.h"
#include "naru/ops.h"
#include "nn/text.h"

namespace naru::nn {
namespace {

using utils::rnn::PackedSequence;

void draw(const std::vector<Tensor>& parameters, int64_t hidden) {
  const double bound = hidden > 0 ? 1 / std::sqrt(static_cast<double>(hidden)) : 0;
  for (const Tensor& p : parameters) init::uniform_(p, -bound, bound);
}

void check_nonlinearity(const std::string& word) {
  if (word != "tanh" && word != "relu") throw ValueError("Unknown nonlinearity '{}'. Select from 'tanh' or 'relu'.", word);
}

// Reorders the states of a packed sequence to the order of its data, or back.
Tensor sorted(const Tensor& hx, const Tensor& indices) { return hx.defined() && indices.defined() ? index_select(hx, 1, indices) : hx; }
PackedSequence with_data(const PackedSequence& like, Tensor data) {
  return {std::move(data), like.batch_sizes, like.sorted_indices, like.unsorted_indices};
}

using Plain = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const std::vector<Tensor>&, const RecurrentOptions&);
using Packed = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensor&, const std::vector<Tensor>&,
                                              const RecurrentOptions&);

std::tuple<PackedSequence, Tensor> run_packed(Packed f, const PackedSequence& in, const Tensor& hx, const std::vector<Tensor>& weights,
                                              const RecurrentOptions& o) {
  auto [out, last] = f(in.data, in.batch_sizes, sorted(hx, in.sorted_indices), weights, o);
  return {with_data(in, std::move(out)), sorted(last, in.unsorted_indices)};
}

void check_input_of_cell(const Tensor& input, const char* name) {
  if (input.dim() != 1 && input.dim() != 2) throw ValueError("{}: Expected input to be 1D or 2D, got {}D instead", name, input.dim());
}
void check_hidden_of_cell(const Tensor& hx, const char* name, const char* what) {
  if (hx.defined() && hx.dim() != 1 && hx.dim() != 2)
    throw ValueError("{}: Expected {} to be 1D or 2D, got {}D instead", name, what, hx.dim());
}

}  // namespace

constexpr int64_t kMostLayers = 100000;  // more would exhaust memory

RecurrentBase::RecurrentBase(int64_t gates, int64_t input_size, int64_t hidden_size, const RnnOptions& o, const Options& options)
    : input_size_(input_size), hidden_size_(hidden_size), options_(o) {
  if (!(o.dropout >= 0 && o.dropout <= 1))
    throw ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed");
  if (input_size <= 0) throw ValueError("input_size must be greater than zero");
  if (hidden_size <= 0) throw ValueError("hidden_size must be greater than zero");
  if (o.num_layers <= 0) throw ValueError("num_layers must be greater than zero");
  if (o.num_layers > kMostLayers) throw ValueError("num_layers: wanted at most {}, got {}", kMostLayers, o.num_layers);
  if (o.proj_size != 0 && gates != 4) throw ValueError("proj_size argument is only supported for LSTM, not RNN or GRU");
  if (o.proj_size < 0) throw ValueError("proj_size should be a positive integer or zero to disable projections");
  if (o.proj_size >= hidden_size) throw ValueError("proj_size has to be smaller than hidden_size");
  const int64_t directions = o.bidirectional ? 2 : 1, state = o.proj_size > 0 ? o.proj_size : hidden_size;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int64_t d = 0; d < directions; ++d) {
      const std::string end = "_l" + std::to_string(layer) + (d ? "_reverse" : "");
      register_parameter("weight_ih" + end, empty({gates * hidden_size, layer == 0 ? input_size : state * directions}, options));
      register_parameter("weight_hh" + end, empty({gates * hidden_size, state}, options));
      if (o.bias)
        for (const char* name : {"bias_ih", "bias_hh"}) register_parameter(name + end, empty({gates * hidden_size}, options));
      if (o.proj_size > 0) register_parameter("weight_hr" + end, empty({o.proj_size, hidden_size}, options));
    }
  reset_parameters();
}
void RecurrentBase::reset_parameters() { draw(parameters(false), hidden_size_); }
RecurrentOptions RecurrentBase::run_options() const {
  return {options_.bias, options_.num_layers, options_.dropout, is_training(), options_.bidirectional, options_.batch_first};
}
std::string RecurrentBase::details() const {
  std::string s = fmt::format("{}, {}", input_size_, hidden_size_);
  if (options_.proj_size) s += fmt::format(", proj_size={}", options_.proj_size);
  if (options_.num_layers != 1) s += fmt::format(", num_layers={}", options_.num_layers);
  if (!options_.bias) s += ", bias=False";
  if (options_.batch_first) s += ", batch_first=True";
  if (options_.dropout != 0) s += ", dropout=" + number_text(options_.dropout);
  if (options_.bidirectional) s += ", bidirectional=True";
  return s;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RnnOptions& o, std::string nonlinearity, const Options& options)
    : RecurrentBase(1, input_size, hidden_size, o, options), nonlinearity_(std::move(nonlinearity)) {
  check_nonlinearity(nonlinearity_);
}
std::tuple<Tensor, Tensor> RNN::forward(const Tensor& input, const Tensor& hx) {
  const Plain f = nonlinearity_ == "tanh" ? Plain(rnn_tanh) : Plain(rnn_relu);
  return f(input, hx, flat_weights(), run_options());
}
std::tuple<PackedSequence, Tensor> RNN::forward(const PackedSequence& input, const Tensor& hx) {
  return run_packed(nonlinearity_ == "tanh" ? Packed(rnn_tanh) : Packed(rnn_relu), input, hx, flat_weights(), run_options());
}
std::shared_ptr<Module> RNN::remake() const { return std::make_shared<RNN>(input_size_, hidden_size_, options_, nonlinearity_); }

GRU::GRU(int64_t input_size, int64_t hidden_size, const RnnOptions& o, const Options& options)
    : RecurrentBase(3, input_size, hidden_size, o, options) {}
std::tuple<Tensor, Tensor> GRU::forward(const Tensor& input, const Tensor& hx) { return gru(input, hx, flat_weights(), run_options()); }
std::tuple<PackedSequence, Tensor> GRU::forward(const PackedSequence& input, const Tensor& hx) {
  return run_packed(gru, input, hx, flat_weights(), run_options());
}
std::shared_ptr<Module> GRU::remake() const { return std::make_shared<GRU>(input_size_, hidden_size_, options_); }

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RnnOptions& o, const Options& options)
    : RecurrentBase(4, input_size, hidden_size, o, options) {}
std::tuple<Tensor, LSTM::State> LSTM::forward(const Tensor& input, const State& hx) {
  auto [out, h, c] = lstm(input, hx, flat_weights(), run_options());
  return {std::move(out), State{std::move(h), std::move(c)}};
}
std::tuple<PackedSequence, LSTM::State> LSTM::forward(const PackedSequence& in, const State& hx) {
  auto [out, h, c] = lstm(in.data, in.batch_sizes, State{sorted(hx.first, in.sorted_indices), sorted(hx.second, in.sorted_indices)},
                          flat_weights(), run_options());
  return {with_data(in, std::move(out)), State{sorted(h, in.unsorted_indices), sorted(c, in.unsorted_indices)}};
}
std::shared_ptr<Module> LSTM::remake() const { return std::make_shared<LSTM>(input_size_, hidden_size_, options_); }

RecurrentCell::RecurrentCell(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias, const Options& options) {
  if (input_size < 0 || hidden_size < 0)
    throw ValueError("a recurrent cell: wanted sizes of 0 or more, got input_size {} and hidden_size {}", input_size, hidden_size);
  weight_ih = register_parameter("weight_ih", empty({gates * hidden_size, input_size}, options));
  weight_hh = register_parameter("weight_hh", empty({gates * hidden_size, hidden_size}, options));
  bias_ih = register_parameter("bias_ih", bias ? empty({gates * hidden_size}, options) : Tensor());
  bias_hh = register_parameter("bias_hh", bias ? empty({gates * hidden_size}, options) : Tensor());
  reset_parameters();
}
void RecurrentCell::reset_parameters() { draw(parameters(false), weight_hh.size(1)); }
std::string RecurrentCell::details() const {
  return fmt::format("{}, {}{}", weight_ih.size(1), weight_hh.size(1), bias_ih.defined() ? "" : ", bias=False");
}
Tensor RecurrentCell::hidden_or_zeros(const Tensor& input, const Tensor& hx) const {
  if (hx.defined()) return hx;
  const Options like(input.dtype(), input.device());
  return input.dim() == 1 ? zeros({weight_hh.size(1)}, like) : zeros({input.size(0), weight_hh.size(1)}, like);
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, bool bias, std::string nonlinearity, const Options& options)
    : RecurrentCell(1, input_size, hidden_size, bias, options), nonlinearity_(std::move(nonlinearity)) {
  check_nonlinearity(nonlinearity_);
}
Tensor RNNCell::forward(const Tensor& input, const Tensor& hx) {
  check_input_of_cell(input, "RNNCell");
  check_hidden_of_cell(hx, "RNNCell", "hidden");
  const Tensor h = hidden_or_zeros(input, hx);
  return (nonlinearity_ == "tanh" ? rnn_tanh_cell : rnn_relu_cell)(input, h, weight_ih, weight_hh, bias_ih, bias_hh);
}
std::shared_ptr<Module> RNNCell::remake() const {
  return std::make_shared<RNNCell>(weight_ih.size(1), weight_hh.size(1), bias_ih.defined(), nonlinearity_);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, bool bias, const Options& options)
    : RecurrentCell(3, input_size, hidden_size, bias, options) {}
Tensor GRUCell::forward(const Tensor& input, const Tensor& hx) {
  check_input_of_cell(input, "GRUCell");
  check_hidden_of_cell(hx, "GRUCell", "hidden");
  return gru_cell(input, hidden_or_zeros(input, hx), weight_ih, weight_hh, bias_ih, bias_hh);
}
std::shared_ptr<Module> GRUCell::remake() const {
  return std::make_shared<GRUCell>(weight_ih.size(1), weight_hh.size(1), bias_ih.defined());
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, bool bias, const Options& options)
    : RecurrentCell(4, input_size, hidden_size, bias, options) {}
LSTMCell::State LSTMCell::forward(const Tensor& input, const State& hx) {
  check_input_of_cell(input, "LSTMCell");
  check_hidden_of_cell(hx.first, "LSTMCell", "hx[0]");
  check_hidden_of_cell(hx.second, "LSTMCell", "hx[1]");
  return lstm_cell(input, {hidden_or_zeros(input, hx.first), hidden_or_zeros(input, hx.second)}, weight_ih, weight_hh, bias_ih, bias_hh);
}
std::shared_ptr<Module> LSTMCell::remake() const {
  return std::make_shared<LSTMCell>(weight_ih.size(1), weight_hh.size(1), bias_ih.defined());
}

// --- calls, with hooks

namespace {

template <class M>
auto forward_of(M& module) {
  return [&module](const auto&... in) { return module.forward(in...); };
}

}  // namespace

std::tuple<Tensor, Tensor> RNN::operator()(const Tensor& input, const Tensor& hx) { return with_hooks(forward_of(*this), input, hx); }
std::tuple<PackedSequence, Tensor> RNN::operator()(const PackedSequence& input, const Tensor& hx) {
  return with_hooks(forward_of(*this), input, hx);
}
std::tuple<Tensor, Tensor> GRU::operator()(const Tensor& input, const Tensor& hx) { return with_hooks(forward_of(*this), input, hx); }
std::tuple<PackedSequence, Tensor> GRU::operator()(const PackedSequence& input, const Tensor& hx) {
  return with_hooks(forward_of(*this), input, hx);
}
std::tuple<Tensor, LSTM::State> LSTM::operator()(const Tensor& input, const State& hx) { return with_hooks(forward_of(*this), input, hx); }
std::tuple<PackedSequence, LSTM::State> LSTM::operator()(const PackedSequence& input, const State& hx) {
  return with_hooks(forward_of(*this), input, hx);
}
Tensor RNNCell::operator()(const Tensor& input, const Tensor& hx) { return with_hooks(forward_of(*this), input, hx); }
Tensor GRUCell::operator()(const Tensor& input, const Tensor& hx) { return with_hooks(forward_of(*this), input, hx); }
LSTMCell::State LSTMCell::operator()(const Tensor& input, const State& hx) { return with_hooks(forward_of(*this), input, hx); }

}  // namespace naru::nn
