// Layers of recurrent cells over padded and packed sequences. A padded batch is treated as a packed one whose sequences all have the full length.
#include <algorithm>
#include <iterator>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/recurrent.h"
#include "ops/nn/recurrent.h"
#include "ops/nn/recurrent_sequence.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

using ops::Recurrent;
using State = ops::RecurrentState;
using Weights = ops::RecurrentWeights;
using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;

constexpr const char* kLayerNames[] = {"RNN", "RNN", "LSTM", "GRU"};

// Splits t into parts of sizes[k] rows. One node collects the gradients of all parts: a gradient for each slice would be as large as t, for each
// step.
Tensors rows_of(const Tensor& t, const Sizes& sizes) {
  Tensors parts;
  {
    const NoGrad off;
    int64_t at = 0;
    for (const int64_t n : sizes) parts.push_back(t.detach().narrow(0, at, n)), at += n;
  }
  if (!autograd::recording({&t})) return parts;
  const auto joined = [sizes, like = Options(t.dtype(), t.device()), width = t.size(1)](const Tensors& g, const Tensors&) -> Tensors {
    Tensors all = g;
    for (size_t k = 0; k < all.size(); ++k)
      if (!all[k].defined()) all[k] = zeros({sizes[k], width}, like);
    return {cat(all)};
  };
  auto node = make_ref<autograd::FunctionNode<decltype(joined)>>("SplitWithSizesBackward0", joined);
  autograd::connect(*node, {&t});
  node->outputs = static_cast<uint32_t>(parts.size());
  for (size_t k = 0; k < parts.size(); ++k) autograd::set_history(parts[k], Ref<autograd::Node>(node), static_cast<uint32_t>(k));
  return parts;
}

Tensor rows(const Tensor& t, int64_t first, int64_t count) {
  return !t.defined() || (first == 0 && count == t.size(0)) ? t : t.narrow(0, first, count);
}
State rows(const State& s, int64_t first, int64_t count) { return {rows(s.h, first, count), rows(s.c, first, count)}; }
Tensor joined(Tensors parts) { return parts.size() == 1 || !parts[0].defined() ? parts[0] : cat(parts); }
State joined(const std::vector<State>& parts) {
  Tensors h, c;
  for (const State& s : parts) h.push_back(s.h), c.push_back(s.c);
  return {joined(std::move(h)), joined(std::move(c))};
}

struct Run {
  Tensor out;
  State last;
};

// Runs one direction of one layer over x (sum of sizes, in), with sizes[t] rows at step t, in descending order. A sequence that ends keeps its last
// state. In reverse, a sequence joins at its last step with its row of `initial`.
Run run_direction(Recurrent kind, const Tensor& x, const Sizes& sizes, const State& initial, const Weights& w, bool reverse) {
  if (ops::takes_sequence(kind, x, sizes, initial, w)) {
    ops::RecurrentRun run = ops::recurrent_sequence(kind, x, sizes, initial, w, reverse);
    return {std::move(run.out), std::move(run.last)};
  }
  const Tensors from_input = rows_of(linear(x, w.ih, w.b_ih), sizes);
  const size_t count = sizes.size();
  Tensors outs(count);
  std::vector<State> ended;
  int64_t going = reverse ? sizes.back() : sizes.front();
  State s = rows(initial, 0, going);
  for (size_t k = 0; k < count; ++k) {
    const size_t t = reverse ? count - 1 - k : k;
    const int64_t n = sizes[t];
    if (n < going) {
      ended.push_back(rows(s, n, going - n));
      s = rows(s, 0, n);
    } else if (n > going) {
      s = joined(std::vector<State>{s, rows(initial, going, n - going)});
    }
    going = n;
    s = ops::recurrent_step(kind, from_input[t], s, w);
    outs[t] = s.h;
  }
  ended.push_back(s);
  std::reverse(ended.begin(), ended.end());
  return {cat(outs), joined(ended)};
}

// The number of parameters per direction of a layer. RuntimeError if the list has another length.
size_t params_each(Recurrent kind, const Tensors& params, const RecurrentOptions& o) {
  const auto places = static_cast<size_t>(o.num_layers * (o.bidirectional ? 2 : 1));
  const size_t plain = o.biases ? 4 : 2;
  if (places > 0)
    for (const size_t each : {plain, plain + 1})
      if (params.size() == places * each && (each == plain || kind == Recurrent::Lstm)) return each;
  throw RuntimeError("got an incorrect number of RNN parameters ({}: wanted {} for each of {} directions of layers, got {})",
                     kLayerNames[static_cast<int>(kind)], plain, places, params.size());
}

Weights weights_at(const Tensors& params, size_t place, size_t each, bool biases) {
  const Tensor* p = params.data() + place * each;
  return {p[0], p[1], biases ? p[2] : Tensor(), biases ? p[3] : Tensor(), each % 2 ? p[each - 1] : Tensor()};
}

// Runs x (sum of sizes, in) through all layers; states are (layers * directions, N, H).
Run run_layers(Recurrent kind, Tensor x, const Sizes& sizes, const State& initial, const Tensors& params, const RecurrentOptions& o) {
  const size_t each = params_each(kind, params, o), directions = o.bidirectional ? 2 : 1;
  Tensors h, c;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    Tensors outs;
    for (size_t d = 0; d < directions; ++d) {
      const size_t place = static_cast<size_t>(layer) * directions + d;
      const auto at = static_cast<int64_t>(place);
      const State from{initial.h.select(0, at), initial.c.defined() ? initial.c.select(0, at) : Tensor()};
      Run run = run_direction(kind, x, sizes, from, weights_at(params, place, each, o.biases), d == 1);
      outs.push_back(std::move(run.out));
      h.push_back(std::move(run.last.h)), c.push_back(std::move(run.last.c));
    }
    x = outs.size() == 1 ? outs[0] : cat(outs, -1);
    if (o.dropout > 0 && o.training && layer + 1 < o.num_layers) x = dropout(x, o.dropout, true);
  }
  return {x, {stack(h), kind == Recurrent::Lstm ? stack(c) : Tensor()}};
}

// --- checks, in PyTorch's order and with its texts

struct Widths {
  int64_t input, hidden, state;  // state: size of h, which projections reduce
};

Widths check_params(Recurrent kind, const Tensors& params, const RecurrentOptions& o) {
  const size_t each = params_each(kind, params, o);
  const char* name = kLayerNames[static_cast<int>(kind)];
  for (const Tensor& p : params) ops::require_defined(p, name, "a parameter");
  const Tensor &ih = params[0], &hh = params[1];
  if (ih.dim() != 2 || hh.dim() != 2 || ih.size(0) % ops::recurrent_gates(kind) != 0)
    throw RuntimeError("{}: wanted weights of {} hidden_size rows and input_size and hidden_size columns, got shapes {} and {}", name,
                       ops::recurrent_gates(kind), ih.sizes().str(), hh.sizes().str());
  return {ih.size(1), ih.size(0) / ops::recurrent_gates(kind), each % 2 ? params[each - 1].size(0) : hh.size(1)};
}

void check_input(Recurrent kind, const Tensor& input, const Tensor& weight, int64_t width) {
  if (input.dtype() != weight.dtype())
    throw ValueError(
        "RNN input dtype (torch.{}) does not match weight dtype (torch.{}). Convert input: input.to(torch.{}), or convert model: "
        "model.to(torch.{})",
        name_of(input.dtype()), name_of(weight.dtype()), name_of(weight.dtype()), name_of(input.dtype()));
  if (input.size(-1) != width)
    throw RuntimeError("input.size(-1) must be equal to input_size. Expected {}, got {} ({})", width, input.size(-1),
                       kLayerNames[static_cast<int>(kind)]);
}

void check_state(const Tensor& t, int64_t places, int64_t batch, int64_t width, const char* what) {
  if (!t.defined() || t.sizes() == Dims{places, batch, width}) return;
  throw RuntimeError("Expected {} size ({}, {}, {}), got {}", what, places, batch, width, t.sizes().str());
}

// The initial states: zeros if not given. RuntimeError if a shape does not match.
State initial_of(Recurrent kind, const State& given, int64_t batch, const Widths& w, const RecurrentOptions& o, const Options& like) {
  const int64_t places = o.num_layers * (o.bidirectional ? 2 : 1);
  const bool lstm = kind == Recurrent::Lstm;
  check_state(given.h, places, batch, w.state, lstm ? "hidden[0]" : "hidden");
  if (lstm) check_state(given.c, places, batch, w.hidden, "hidden[1]");
  State s = given;
  if (!s.h.defined()) s.h = zeros({places, batch, w.state}, like);
  if (lstm && !s.c.defined()) s.c = zeros({places, batch, w.hidden}, like);
  return s;
}

void check_dimensions(Recurrent kind, const Tensor& input, const State& s) {
  const char* name = kLayerNames[static_cast<int>(kind)];
  ops::require_defined(input, name, "input");
  if (input.dim() != 2 && input.dim() != 3)
    throw ValueError("{}: Expected input to be 2D or 3D, got {}D{} instead", name, input.dim(),
                     kind == Recurrent::Tanh || kind == Recurrent::Relu ? " tensor" : "");
  const char* batched = input.dim() == 3 ? "batched 3-D" : "unbatched 2-D";
  const int64_t wanted = input.dim();
  if (kind == Recurrent::Lstm && s.h.defined() && s.c.defined() && (s.h.dim() != wanted || s.c.dim() != wanted))
    throw RuntimeError("For {} input, hx and cx should also be {}-D but got ({}-D, {}-D) tensors", batched, wanted, s.h.dim(), s.c.dim());
  if (s.h.defined() && s.h.dim() != wanted)
    throw RuntimeError("For {} input, hx should also be {}-D but got {}-D tensor", batched, wanted, s.h.dim());
}

Run run_padded(Recurrent kind, const Tensor& given, const State& hx, const Tensors& params, const RecurrentOptions& o) {
  check_dimensions(kind, given, hx);
  const bool single = given.dim() == 2;
  const int64_t batch_dim = single || !o.batch_first ? 1 : 0;
  const auto batched = [&](const Tensor& t) { return single && t.defined() ? t.unsqueeze(1) : t; };
  Tensor input = batched(given);
  const Widths w = check_params(kind, params, o);
  check_input(kind, input, params[0], w.input);
  if (batch_dim == 0) input = input.transpose(0, 1);
  const int64_t steps = input.size(0), batch = input.size(1);
  const State initial = initial_of(kind, {batched(hx.h), batched(hx.c)}, batch, w, o, Options(input.dtype(), input.device()));
  if (steps == 0) throw RuntimeError("Expected sequence length to be larger than 0 in RNN");
  Run run = run_layers(kind, input.reshape({steps * batch, w.input}), Sizes(static_cast<size_t>(steps), batch), initial, params, o);
  run.out = run.out.reshape({steps, batch, run.out.size(-1)});
  if (single) return {run.out.squeeze(1), {run.last.h.squeeze(1), run.last.c.defined() ? run.last.c.squeeze(1) : Tensor()}};
  if (batch_dim == 0) run.out = run.out.transpose(0, 1);
  return run;
}

Sizes sizes_of(const Tensor& batch_sizes, int64_t total) {
  ops::require_defined(batch_sizes, "RNN", "batch_sizes");
  if (!batch_sizes.device().is_cpu() || batch_sizes.dtype() != DType::I64 || batch_sizes.dim() != 1 || batch_sizes.numel() == 0)
    throw RuntimeError("batch_sizes: wanted numbers (T) of int64 on cpu, got shape {} of {} on {}", batch_sizes.sizes().str(),
                       name_of(batch_sizes.dtype()), batch_sizes.device().str());
  Sizes sizes = batch_sizes.to_ints();
  int64_t sum = 0, before = sizes[0];
  for (const int64_t n : sizes) {
    if (n <= 0 || n > before) throw RuntimeError("batch_sizes: wanted numbers above 0 that do not rise, got {} behind {}", n, before);
    if (__builtin_add_overflow(sum, n, &sum)) break;
    before = n;
  }
  if (sum != total) throw RuntimeError("batch_sizes: their sum is {}, but the packed data has {} rows", sum, total);
  return sizes;
}

Run run_packed(Recurrent kind, const Tensor& data, const Tensor& batch_sizes, const State& hx, const Tensors& params,
               const RecurrentOptions& o) {
  ops::require_defined(data, kLayerNames[static_cast<int>(kind)], "data");
  if (data.dim() != 2) throw RuntimeError("input must have 2 dimensions, got {}", data.dim());
  const Widths w = check_params(kind, params, o);
  check_input(kind, data, params[0], w.input);
  const Sizes sizes = sizes_of(batch_sizes, data.size(0));
  const State initial = initial_of(kind, hx, sizes[0], w, o, Options(data.dtype(), data.device()));
  return run_layers(kind, data, sizes, initial, params, o);
}

std::tuple<Tensor, Tensor> with_hidden(Run run) { return {std::move(run.out), std::move(run.last.h)}; }
std::tuple<Tensor, Tensor, Tensor> with_cell(Run run) { return {std::move(run.out), std::move(run.last.h), std::move(run.last.c)}; }

}  // namespace

std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, const Tensors& params, const RecurrentOptions& o) {
  return with_hidden(run_padded(Recurrent::Tanh, input, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, const Tensors& params, const RecurrentOptions& o) {
  return with_hidden(run_padded(Recurrent::Relu, input, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, const Tensors& params, const RecurrentOptions& o) {
  return with_hidden(run_padded(Recurrent::Gru, input, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const std::pair<Tensor, Tensor>& hx, const Tensors& params,
                                        const RecurrentOptions& o) {
  return with_cell(run_padded(Recurrent::Lstm, input, {hx.first, hx.second}, params, o));
}
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const Tensors& params,
                                    const RecurrentOptions& o) {
  return with_hidden(run_packed(Recurrent::Tanh, data, batch_sizes, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const Tensors& params,
                                    const RecurrentOptions& o) {
  return with_hidden(run_packed(Recurrent::Relu, data, batch_sizes, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const Tensors& params,
                               const RecurrentOptions& o) {
  return with_hidden(run_packed(Recurrent::Gru, data, batch_sizes, {hx, {}}, params, o));
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, const std::pair<Tensor, Tensor>& hx,
                                        const Tensors& params, const RecurrentOptions& o) {
  return with_cell(run_packed(Recurrent::Lstm, data, batch_sizes, {hx.first, hx.second}, params, o));
}

}  // namespace naru
