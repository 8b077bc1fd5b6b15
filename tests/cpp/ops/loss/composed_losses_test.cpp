// Losses that are compositions, prelu and bilinear, from C++: values, gradients, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_gradient;
using testing::expect_starts;
using testing::text_of;

constexpr Reduction kNone = Reduction::None;

TEST(ComposedLosses, HaveTheValuesOfTheirFormulas) {
  const Tensor x = tensor({0.5, -2.0}, DType::F64), y = tensor({1.0, -1.0}, DType::F64);
  EXPECT_EQ(huber_loss(x, y * 0.0, kNone).to_doubles(), (Doubles{0.125, 1.5}));
  EXPECT_EQ(hinge_embedding_loss(x, y, 1, kNone).to_doubles(), (Doubles{0.5, 3}));
  EXPECT_EQ(margin_ranking_loss(x, y * 0.0, y, 1, kNone).to_doubles(), (Doubles{0.5, 0}));
  EXPECT_NEAR(soft_margin_loss(x, y).item<double>(), (std::log1p(std::exp(-0.5)) + std::log1p(std::exp(-2.0))) / 2, 1e-15);
  EXPECT_NEAR(poisson_nll_loss(x, x * 0.0 + 3.0, true, false, 1e-8, kNone)[0].item<double>(), std::exp(0.5) - 1.5, 1e-15);
  EXPECT_EQ(kl_div(tensor({-1.0, -2.0}), tensor({0.0, 1.0}), kNone).to_doubles(), (Doubles{0, 2}));
  EXPECT_EQ(cosine_embedding_loss(tensor({1.0, 0.0}), tensor({0.0, 2.0}), tensor(1.0)).item<double>(), 1);
  EXPECT_NEAR(
      triplet_margin_loss(tensor({0.0, 0.0}, DType::F64), tensor({3.0, 4.0}, DType::F64), tensor({0.0, 1.0}, DType::F64)).item<double>(), 5,
      1e-5);
}

TEST(ComposedLosses, HaveGradients) {
  const Tensor y = tensor({1.0, -1.0, 1.0}, DType::F64), x = tensor({0.3, -0.7, 2.5}, DType::F64);
  for (const auto& f :
       {+[](const Tensor&a, const Tensor&b) { return huber_loss(a, b); }, +[](const Tensor&a, const Tensor&b) { return kl_div(a, abs(b)); },
        +[](const Tensor&a, const Tensor&b) { return poisson_nll_loss(a, abs(b) + 1.0, true, true); },
        +[](const Tensor&a, const Tensor&b) { return hinge_embedding_loss(a, b); },
        +[](const Tensor&a, const Tensor&b) { return soft_margin_loss(a, b); },
        +[](const Tensor&a, const Tensor&b) { return cosine_similarity(a, b, 0); },
        +[](const Tensor&a, const Tensor&b) { return triplet_margin_loss(a, b, b * 2.0); }})
    expect_gradient([&](const Tensor& a) { return f(a, y).reshape({1}); }, x);
}

TEST(ComposedLosses, SayWhatTheyWant) {
  const Tensor x = zeros({2, 3});
  expect_starts(text_of<RuntimeError>([&] { huber_loss(x, x, kNone, 0); }), "huber_loss does not support non-positive values for delta.");
  expect_starts(text_of<ValueError>([&] { triplet_margin_loss(x, x, x, 0); }), "margin must be greater than 0, got 0");
  expect_starts(text_of<RuntimeError>([&] { cosine_embedding_loss(x, x, zeros({})); }),
                "0D target tensor expects 1D input tensors, but found inputs with sizes [2, 3] and [2, 3].");
  expect_starts(text_of<RuntimeError>([&] { prelu(x, zeros({2})); }),
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3.");
  expect_starts(text_of<RuntimeError>([&] { bilinear(x, x, zeros({1, 2, 3})); }), "bilinear(): input1 size does not match weight size");
}

TEST(ComposedLosses, PreluHasAWeightForEachChannelAndBilinearOneForEachPair) {
  const Tensor x = tensor({-1.0, 1.0, -2.0, -4.0}).reshape({1, 2, 2});
  EXPECT_EQ(prelu(x, tensor({0.5, 0.25})).to_doubles(), (Doubles{-0.5, 1, -0.5, -1}));
  const Tensor a = tensor({1.0, 2.0}).reshape({1, 2}), b = tensor({3.0, 5.0}).reshape({1, 2});
  EXPECT_EQ(bilinear(a, b, eye(2).unsqueeze(0), tensor({1.0})).to_doubles(), (Doubles{14}));
}

}  // namespace
}  // namespace naru
