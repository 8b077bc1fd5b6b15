// MultiheadAttention and the Transformer in C++.
#include "naru/nn/transformer.h"

#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/naru.h"

namespace naru {
namespace {

namespace F = nn::functional;

std::vector<std::string> keys_of(const nn::Module& m) {
  std::vector<std::string> keys;
  for (const auto& [name, t] : m.state_dict()) keys.push_back(name);
  return keys;
}

TEST(MultiheadAttention, HasPytorchsParameters) {
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys_of(nn::MultiheadAttention(8, 2)), (Keys{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(keys_of(nn::MultiheadAttention(8, 2, {.bias = false, .add_bias_kv = true, .kdim = 3})),
            (Keys{"q_proj_weight", "k_proj_weight", "v_proj_weight", "bias_k", "bias_v", "out_proj.weight"}));
  EXPECT_THROW(nn::MultiheadAttention(8, 3), ValueError);
}

TEST(MultiheadAttention, GivesTheSameWithAndWithoutWeights) {
  manual_seed(0);
  nn::MultiheadAttention layer(8, 2, {.add_bias_kv = true, .add_zero_attn = true, .batch_first = true});
  const Tensor q = randn({3, 4, 8}), k = randn({3, 5, 8});
  Tensor padding = zeros({3, 5}, Options(DType::Bool));
  padding.select(1, 4).fill_(true);
  const auto [with, weights] = layer(q, k, k, {.key_padding_mask = padding});
  const auto [without, none] = layer(q, k, k, {.key_padding_mask = padding, .need_weights = false});
  EXPECT_TRUE(allclose(with, without, 1e-5, 1e-6));
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(weights.sizes(), (Dims{3, 4, 7}));
  EXPECT_TRUE(allclose(weights.sum({-1}), ones({3, 4})));
  EXPECT_EQ(weights.select(2, 4).abs().max().item<double>(), 0);
  const auto [one, its] = layer(q[0], k[0], k[0], {.key_padding_mask = padding[0], .average_attn_weights = false});
  EXPECT_TRUE(allclose(one, with[0], 1e-5, 1e-6));
  EXPECT_EQ(its.sizes(), (Dims{2, 4, 7}));
}

TEST(MultiheadAttention, SaysWhatDoesNotFit) {
  nn::MultiheadAttention layer(8, 2);
  const Tensor x = randn({4, 3, 8});
  EXPECT_THROW(layer(x[0][0], x, x), ValueError);
  EXPECT_THROW(layer(x, x[0], x), ValueError);
  EXPECT_THROW(layer(x, x, x, {.attn_mask = zeros({2, 2})}), RuntimeError);
  EXPECT_THROW(layer(x, x, x, {.is_causal = true}), RuntimeError);
  EXPECT_THROW(layer(randn({4, 3, 6}), x, x), ValueError);
}

TEST(Transformer, ACausalEncoderDoesNotSeeWhatComesLater) {
  manual_seed(1);
  nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .norm_first = true}), 2,
                                 std::make_shared<nn::LayerNorm>(8));
  encoder.eval();
  const Tensor x = randn({5, 2, 8});
  Tensor other = x.clone();
  other[4].fill_(3);
  const nn::EncoderCall call{.mask = nn::Transformer::generate_square_subsequent_mask(5)};
  const Tensor a = encoder.forward(x, call), b = encoder.forward(other, call);
  EXPECT_TRUE(allclose(a.narrow(0, 0, 4), b.narrow(0, 0, 4)));
  EXPECT_FALSE(allclose(a[4], b[4]));
  EXPECT_FALSE(allclose(encoder(x).narrow(0, 0, 4), encoder(other).narrow(0, 0, 4)));
}

TEST(Transformer, IsClonedAndTrains) {
  manual_seed(2);
  nn::Transformer model(8, 2, 1, 1, {.dim_feedforward = 16, .batch_first = true});
  const Tensor src = randn({2, 4, 8}), tgt = randn({2, 3, 8});
  model.eval();
  const auto copy = std::dynamic_pointer_cast<nn::Transformer>(model.clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(keys_of(*copy), keys_of(model));
  EXPECT_EQ((*copy)(src, tgt).to_doubles(), model(src, tgt).to_doubles());
  model.train();
  model(src, tgt).sum().backward();
  for (const auto& [name, p] : model.named_parameters()) EXPECT_TRUE(p.grad().defined()) << name;
  EXPECT_THROW(model(src, randn({3, 3, 8})), RuntimeError);
  EXPECT_THROW(model(src, randn({2, 3, 6})), RuntimeError);
}

}  // namespace
}  // namespace naru
