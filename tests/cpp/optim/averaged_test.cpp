// Parameter averages (averaged_model.h).
#include "naru/optim/averaged_model.h"

#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/nn.h"
#include "naru/nn/images.h"

namespace naru {
namespace {

using namespace optim;
using Doubles = std::vector<double>;

TEST(AveragedModel, HoldsTheMeanOfWhatTheModelWas) {
  nn::Linear model(1, 1, false);
  AveragedModel mean(model), moving(model, ema(0.75));
  const NoGrad off;
  for (const double value : {1.0, 2.0, 6.0}) {
    model.weight.fill_(value);
    mean.update_parameters(model), moving.update_parameters(model);
  }
  EXPECT_EQ(mean.n_averaged(), 3);
  EXPECT_EQ(mean.parameters()[0].item<double>(), 3);
  EXPECT_EQ(moving.parameters()[0].item<double>(), (1 * 0.75 + 2 * 0.25) * 0.75 + 6 * 0.25);
  EXPECT_EQ(mean(ones({1, 1})).item<double>(), 3);
  EXPECT_EQ(model.weight.item<double>(), 6);
  EXPECT_THROW(ema(2), ValueError);
  EXPECT_THROW(mean.update_parameters(nn::ReLU()), RuntimeError);
}

TEST(AveragedModel, BuffersAreCopiedOrAveragedToo) {
  nn::BatchNorm1d model(1);
  AveragedModel copied(model), averaged(model, swa(), true);
  const NoGrad off;
  for (const double value : {1.0, 3.0}) {
    model.running_mean.fill_(value);
    copied.update_parameters(model), averaged.update_parameters(model);
  }
  EXPECT_EQ(copied.module().get_buffer("running_mean").item<double>(), 3);
  EXPECT_EQ(averaged.module().get_buffer("running_mean").item<double>(), 2);
}

TEST(AveragedModel, ItsRateIsAnnealedAsPyTorchDoes) {
  for (const bool linear : {false, true}) {
    SGD o({zeros({1}).requires_grad_()}, 1.0);
    SWALR schedule(o, 0.1, 4, linear);
    const Doubles wanted =
        linear ? Doubles{1, 0.775, 0.55, 0.325, 0.1, 0.1} : Doubles{1, 0.8681980515339464, 0.55, 0.23180194846605365, 0.1, 0.1};
    for (const double rate : wanted) {
      EXPECT_NEAR(o.lr(), rate, 1e-12);
      schedule.step();
    }
  }
}

}  // namespace
}  // namespace naru
