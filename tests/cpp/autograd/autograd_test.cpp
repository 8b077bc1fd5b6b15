#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::leaf;

TEST(Autograd, GradientsOfASharedOperandAddUp) {
  Tensor x = leaf({1, 2, 3});
  (x * x + x).sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{3, 5, 7}));
}

TEST(Autograd, ASecondBackwardAccumulatesIntoGrad) {
  Tensor x = leaf({1, 2});
  (x * 2).sum().backward();
  (x * 3).sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{5, 5}));
}

TEST(Autograd, ABroadcastOperandGetsTheSumOverWhereItWasRepeated) {
  Tensor row = leaf({1, 2, 3});
  Tensor column = leaf({1, 2});
  (row * column.view({2, 1})).sum().backward();
  EXPECT_EQ(row.grad().to_doubles(), (Doubles{3, 3, 3}));
  EXPECT_EQ(column.grad().to_doubles(), (Doubles{6, 6}));
}

TEST(Autograd, AGraphIsFreedByBackwardUnlessItIsRetained) {
  Tensor x = leaf({2});
  Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(x.grad().to_doubles(), Doubles{8});
  EXPECT_THROW(y.backward(), RuntimeError);
}

TEST(Autograd, AnInPlaceWriteToASavedValueIsAnErrorThatNamesTheOperation) {
  Tensor x = leaf({1, 2});
  Tensor y = x.exp();
  Tensor z = (y * y).sum();
  y.add_(1);
  try {
    z.backward();
    FAIL() << "backward took a changed value";
  } catch (const RuntimeError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("modified by an inplace operation"), std::string::npos) << text;
    EXPECT_NE(text.find("MulBackward0"), std::string::npos) << text;
    EXPECT_NE(text.find("add"), std::string::npos) << text;
  }
}

TEST(Autograd, ALeafThatRequiresGradCanOnlyBeWrittenUnderNoGrad) {
  Tensor x = leaf({1, 2});
  EXPECT_THROW(x.add_(1), RuntimeError);
  EXPECT_THROW(x.select(0, 0).mul_(2), RuntimeError);
  {
    NoGrad no_grad;
    x.add_(1);
  }
  EXPECT_EQ(x.to_doubles(), (Doubles{2, 3}));
}

TEST(Autograd, AnInPlaceOperatorContinuesTheHistory) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  y.mul_(2).add_(x);
  y.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{7, 7}));
}

TEST(Autograd, AWriteThroughAViewBecomesPartOfTheBasesHistory) {
  Tensor w = leaf({5});
  Tensor y = zeros({3}, DType::F64);
  y.select(0, 1).copy_(w.view(Dims{}));
  EXPECT_TRUE(y.requires_grad());
  (y * tensor(Doubles{1, 2, 3}, DType::F64)).sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), Doubles{2});
}

TEST(Autograd, AWriteThroughAViewCutsOffTheGradientOfWhatItReplaced) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 2;
  Tensor head = y.slice(0, 0, 2);
  head.mul_(10);
  EXPECT_EQ(y.to_doubles(), (Doubles{20, 40, 6}));
  (y.sum() + head.sum()).backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{40, 40, 2}));
}

TEST(Autograd, AViewMadeBeforeAWriteToItsBaseSeesTheNewHistory) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 2;
  Tensor head = y.slice(0, 0, 2);
  y.mul_(3);
  head.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{6, 6, 0}));
}

TEST(Autograd, GradGivesGradientsWithoutTouchingGrad) {
  Tensor x = leaf({3});
  Tensor y = leaf({4});
  const auto g = grad({(x * y).sum()}, {x, y});
  EXPECT_EQ(g[0].to_doubles(), Doubles{4});
  EXPECT_EQ(g[1].to_doubles(), Doubles{3});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_THROW(grad({(x * 2).sum()}, {y}), RuntimeError);
  EXPECT_FALSE(grad({(x * 2).sum()}, {y}, {}, false, false, true)[0].defined());
}

TEST(Autograd, GradientsHaveGradients) {
  Tensor x = leaf({2});
  const Tensor first = grad({x.pow(4).sum()}, {x}, {}, false, true)[0];
  EXPECT_DOUBLE_EQ(first.item<double>(), 32);
  const Tensor second = grad({first.sum()}, {x}, {}, false, true)[0];
  EXPECT_DOUBLE_EQ(second.item<double>(), 48);
  EXPECT_NEAR(grad({second.sum()}, {x})[0].item<double>(), 48, 1e-12);
}

TEST(Autograd, HooksSeeAndReplaceGradients) {
  Tensor x = leaf({1, 1});
  Tensor y = x * 2;
  Doubles seen;
  const int64_t number = y.register_hook([&](const Tensor& g) {
    seen = g.to_doubles();
    return g * 10;
  });
  (y * 3).sum().backward();
  EXPECT_EQ(seen, (Doubles{3, 3}));
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{60, 60}));
  Tensor z = leaf({1});
  z.remove_hook(z.register_hook([](const Tensor& g) { return g * 0; }));
  z.sum().backward();
  EXPECT_EQ(z.grad().to_doubles(), Doubles{1});
  y.remove_hook(number);
}

TEST(Autograd, RetainGradKeepsTheGradientOfAResult) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.retain_grad();
  (y * y).sum().backward();
  EXPECT_EQ(y.grad().to_doubles(), (Doubles{4, 8}));
}

TEST(Autograd, DetachAndNoGradCutTheHistory) {
  Tensor x = leaf({1});
  EXPECT_FALSE((x * 2).detach().requires_grad());
  NoGrad no_grad;
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(Autograd, OnlyFloatingPointTensorsCanRequireGrad) { EXPECT_THROW(arange(0, 3).requires_grad_(), RuntimeError); }

TEST(Autograd, BackwardOfManyElementsNeedsAGradient) {
  Tensor x = leaf({1, 2});
  try {
    (x * 2).backward();
    ADD_FAILURE() << "no error";
  } catch (const RuntimeError& error) {
    EXPECT_NE(std::string(error.what()).find("pass backward(gradient)"), std::string::npos) << error.what();
  }
  (x * 2).backward(ones({2}, DType::F64));
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{2, 2}));
}

TEST(Autograd, AChainOfManyNodesNeedsNoDeepStack) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1000000; ++i) y = y + 1;
  y.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), Doubles{1});
}

}  // namespace
}  // namespace naru
