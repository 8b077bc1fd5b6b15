// Recurrent networks.
#include "naru/nn/recurrent.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using List = std::vector<Tensor>;
namespace R = nn::utils::rnn;

// The hidden state and the cell state of an LSTM.
std::pair<Tensor, Tensor> state_of(const List& hx, const char* op) {
  if (hx.size() != 2) throw RuntimeError("{} expects two hidden states", op);
  return {hx[0], hx[1]};
}

using Cell = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template <Cell cell>
void define_cell(const char* name) {
  def(kFunction, name, "input, hx, w_ih, w_hh, b_ih=None, b_hh=None", "One step of a recurrent cell: the hidden state after it.",
      [](const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const OptTensor& b_ih, const OptTensor& b_hh) {
        return cell(x, hx, w_ih, w_hh, or_undefined(b_ih), or_undefined(b_hh));
      });
}

using Plain = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const List&, const RecurrentOptions&);
using Packed = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const Tensor&, const List&, const RecurrentOptions&);
template <Plain plain, Packed packed>
void define_layers(const char* name) {
  def(kFunction, name, "input, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first",
      "Layers of a recurrent network: (outputs, last hidden state).",
      [](const Tensor& x, const OptTensor& sizes, const OptTensor& hx, const List& params, bool biases, int64_t layers, double dropout,
         bool training, bool bidirectional, bool batch_first) -> std::pair<Tensor, Tensor> {
        const RecurrentOptions o{biases, layers, dropout, training, bidirectional, batch_first};
        auto [out, h] = sizes ? packed(x, *sizes, or_undefined(hx), params, o) : plain(x, or_undefined(hx), params, o);
        return {std::move(out), std::move(h)};
      });
}

void define_packing() {
  def(kFunction, "_pack_padded_sequence", "input, lengths, batch_first", "Sequences without their padding, and the batch of each step.",
      [](const Tensor& x, const Tensor& lengths, bool batch_first) { return R::pack_rows(x, lengths, batch_first); });
  def(kFunction, "_pad_packed_sequence", "data, batch_sizes, batch_first, padding_value, total_length",
      "Packed sequences with padding, and their lengths.",
      [](const Tensor& data, const Tensor& sizes, bool batch_first, double value, std::optional<int64_t> total) {
        return R::pad_rows(data, sizes, batch_first, value, total);
      });
  def(kFunction, "_invert_permutation", "permutation", "Where each number stands in a permutation.",
      [](const Tensor& t) { return R::invert_permutation(t); });
}

}  // namespace

void define_recurrent() {
  define_cell<rnn_tanh_cell>("rnn_tanh_cell");
  define_cell<rnn_relu_cell>("rnn_relu_cell");
  define_cell<gru_cell>("gru_cell");
  def(kFunction, "lstm_cell", "input, hx, w_ih, w_hh, b_ih=None, b_hh=None", "One step of an LSTM: the hidden state and the cell after it.",
      [](const Tensor& x, const List& hx, const Tensor& w_ih, const Tensor& w_hh, const OptTensor& b_ih, const OptTensor& b_hh) {
        return lstm_cell(x, state_of(hx, "lstm_cell"), w_ih, w_hh, or_undefined(b_ih), or_undefined(b_hh));
      });
  define_layers<rnn_tanh, rnn_tanh>("_rnn_tanh");
  define_layers<rnn_relu, rnn_relu>("_rnn_relu");
  define_layers<gru, gru>("_gru");
  def(kFunction, "_lstm", "input, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first",
      "Layers of an LSTM: (outputs, last hidden state, last cell).",
      [](const Tensor& x, const OptTensor& sizes, const List& hx, const List& params, bool biases, int64_t layers, double dropout,
         bool training, bool bidirectional, bool batch_first) -> List {
        const RecurrentOptions o{biases, layers, dropout, training, bidirectional, batch_first};
        const std::pair<Tensor, Tensor> state = hx.empty() ? std::pair<Tensor, Tensor>() : state_of(hx, "lstm");
        auto [out, h, c] = sizes ? lstm(x, *sizes, state, params, o) : lstm(x, state, params, o);
        return {std::move(out), std::move(h), std::move(c)};
      });
  define_packing();
}

}  // namespace naru::py
