// Recurrent modules: tests/python/nn/test_recurrent.py tests the values; these tests check that the C++ classes compute the same.
#include <gtest/gtest.h>

#include "naru/naru.h"

namespace naru::nn {
namespace {

namespace rnn = utils::rnn;

// Floating-point sums may differ in the last bits for products of different shapes.
void expect_close(const Tensor& a, const Tensor& b) { EXPECT_TRUE(allclose(a, b, 1e-5, 1e-6)); }

TEST(Recurrent, a_layer_is_its_cell_step_by_step) {
  LSTM layer(3, 4);
  LSTMCell cell(3, 4);
  NamedTensors state;
  for (const auto& [name, t] : layer.state_dict()) state.emplace_back(name.substr(0, name.size() - 3), t);
  cell.load_state_dict(state);
  const Tensor x = randn({5, 2, 3});
  const auto [out, last] = layer(x);
  LSTMCell::State s;
  for (int64_t t = 0; t < 5; ++t) {
    s = cell(x.select(0, t), s);
    expect_close(out.select(0, t), s.first);
  }
  expect_close(last.first.select(0, 0), s.first);
  expect_close(last.second.select(0, 0), s.second);
}

TEST(Recurrent, layers_directions_and_batch_first_have_pytorchs_shapes_and_names) {
  GRU m(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  const auto [out, last] = m(randn({7, 5, 3}));
  EXPECT_EQ(out.sizes(), (Dims{7, 5, 8}));
  EXPECT_EQ(last.sizes(), (Dims{4, 7, 4}));
  EXPECT_EQ(m.named_parameters()[4].first, "weight_ih_l0_reverse");
  EXPECT_EQ(m.str(), "GRU(3, 4, num_layers=2, batch_first=True, bidirectional=True)");
  sum(out).backward();
  EXPECT_TRUE(m.parameters()[0].grad().defined());
  const auto twin = m.clone();
  const auto [same, end] = (*twin->as<GRU>())(zeros({1, 2, 3}));
  expect_close(same, std::get<0>(m(zeros({1, 2, 3}))));
}

TEST(Recurrent, a_packed_sequence_gives_what_each_sequence_gives_alone) {
  RNN m(3, 4, {}, "relu");
  const Tensor x = randn({5, 2, 3});
  const auto packed = rnn::pack_padded_sequence(x, tensor({2, 5}), false, false);
  const auto [out, last] = m.forward(packed);
  const auto [padded, lengths] = rnn::pad_packed_sequence(out);
  EXPECT_EQ(lengths.to_ints(), (std::vector<int64_t>{2, 5}));
  const auto [alone, end] = m(x.narrow(0, 0, 2).narrow(1, 0, 1));
  expect_close(padded.narrow(0, 0, 2).narrow(1, 0, 1), alone);
  expect_close(last.narrow(1, 0, 1), end);
}

TEST(Recurrent, what_does_not_fit_is_a_typed_error) {
  EXPECT_THROW(LSTM(3, 4, {.proj_size = 4}), ValueError);
  EXPECT_THROW(GRU(3, 4, {.proj_size = 2}), ValueError);
  EXPECT_THROW(RNN(3, 4, {}, "elu"), ValueError);
  EXPECT_THROW(GRU(3, 4)(ones({2, 1, 5})), RuntimeError);
  EXPECT_THROW(GRUCell(3, 4)(ones({2, 3}), ones({3, 4})), RuntimeError);
  EXPECT_THROW(rnn::pack_padded_sequence(ones({3, 2}), tensor({1, 2})), RuntimeError);
}

}  // namespace
}  // namespace naru::nn
