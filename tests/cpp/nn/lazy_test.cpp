#include <gtest/gtest.h>

#include "naru/nn/lazy.h"
#include "naru/optim.h"

namespace naru::nn {
namespace {

TEST(Lazy, ALayerLearnsFromItsFirstTensorHowManyComeIn) {
  Sequential model(LazyConv2d(4, Dims{3}), LazyBatchNorm2d(), ReLU(), Flatten(), LazyLinear(5));
  EXPECT_NE(model.str().find("LazyConv2d"), std::string::npos);
  EXPECT_EQ(model.parameters()[0].numel(), 0);
  EXPECT_EQ(model(randn({2, 3, 8, 8})).sizes(), (Dims{2, 5}));
  EXPECT_EQ(model.str().find("Lazy"), std::string::npos);
  EXPECT_NE(model.str().find("BatchNorm2d(4,"), std::string::npos) << model.str();
  EXPECT_EQ(model[4].get_parameter("weight").sizes(), (Dims{5, 144}));
  EXPECT_THROW(model(randn({2, 4, 8, 8})), RuntimeError);  // the sizes are now fixed
}

TEST(Lazy, ItsParametersAreThoseOfALayerMadeWithTheSize) {
  manual_seed(5);
  LazyLinear lazy(4);
  const Tensor x = ones({2, 3});
  const Tensor y = lazy(x);
  manual_seed(5);
  Linear plain(3, 4);
  EXPECT_TRUE(equal(y, plain(x)));
  EXPECT_EQ(lazy.str(), plain.str());
}

TEST(Lazy, AnOptimizerMadeBeforeTheFirstCallMovesTheParameters) {
  LazyLinear lazy(2);
  optim::SGD optimizer(lazy.parameters(), 0.1);
  lazy(ones({1, 3})).sum().backward();
  const Tensor before = lazy.weight.detach().clone();
  optimizer.step();
  EXPECT_TRUE(allclose(lazy.weight, before - 0.1));
  EXPECT_TRUE(lazy.weight.requires_grad());
}

TEST(Lazy, AStateTellsTheSizeToo) {
  Sequential from(Conv2d(4, 6, Dims{3}, {.groups = 2}), BatchNorm2d(6)), to(LazyConv2d(6, Dims{3}, {.groups = 2}), LazyBatchNorm2d());
  to.load_state_dict(from.state_dict());
  from.eval(), to.eval();
  const Tensor x = randn({2, 4, 5, 5});
  EXPECT_TRUE(equal(from(x), to(x)));
}

TEST(Lazy, TypeAndCopiesAreKept) {
  LazyLinear lazy(2);
  lazy.to(DType::F64);
  const auto copy = lazy.clone();
  EXPECT_EQ(copy->name(), "LazyLinear");
  EXPECT_EQ((*copy)(ones({1, 3}, DType::F64)).dtype(), DType::F64);
  EXPECT_TRUE(lazy.has_uninitialized_params());
  lazy(ones({1, 4}, DType::F64));
  EXPECT_EQ(lazy.clone()->name(), "Linear");
}

TEST(Lazy, AWrongNumberOfDimensionsIsTheLayersError) {
  LazyBatchNorm2d lazy;
  EXPECT_THROW(lazy(ones({2, 3})), ValueError);
  EXPECT_TRUE(lazy.has_uninitialized_params());
}

}  // namespace
}  // namespace naru::nn
