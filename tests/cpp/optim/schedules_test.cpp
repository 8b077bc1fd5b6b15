// Schedulers, parameter groups and per-parameter optimizers, against values from PyTorch.
#include <gtest/gtest.h>

#include <cmath>

#include "naru/ops.h"
#include "naru/optim/lr_scheduler.h"

namespace naru {
namespace {

using namespace optim;
using Doubles = std::vector<double>;

void expect_near(const Doubles& got, const Doubles& wanted, const std::string& what, double digits = 1e-11) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], digits * (1 + std::abs(wanted[i]))) << what << " " << i;
}

// Two groups with rates 1 and 0.5, momentum 0.9.
SGD two_groups() {
  const SgdOptions o{.lr = 1, .momentum = 0.9};
  SgdOptions second = o;
  second.lr = 0.5;
  return SGD(std::vector<Group<SgdOptions>>{{{zeros({1}).requires_grad_()}}, {{zeros({1}).requires_grad_()}, second}}, o);
}

using Make = std::function<std::shared_ptr<LRScheduler>(Optimizer&)>;
template <class S, class... A>
Make made(A... a) {
  return [=](Optimizer& o) { return std::make_shared<S>(o, a...); };
}

struct Case {
  const char* name;
  Make make;
  Doubles rates;         // of the second group, per epoch
  Doubles momenta = {};  // of the first group
};

std::vector<Case> cases() {
  const Make sequential = [](Optimizer& o) {
    return std::make_shared<SequentialLR>(
        o, SequentialLR::Schedules{std::make_shared<ConstantLR>(o, 0.1, 2), std::make_shared<ExponentialLR>(o, 0.5)},
        std::vector<int64_t>{3});
  };
  const Make chained = [](Optimizer& o) {
    return std::make_shared<ChainedScheduler>(
        SequentialLR::Schedules{std::make_shared<ConstantLR>(o, 0.1, 2), std::make_shared<ExponentialLR>(o, 0.5)});
  };
  const Make once = [](Optimizer& o) { return std::make_shared<OneCycleLR>(o, 2.0, 10); };
  const Make thrice = [](Optimizer& o) {
    return std::make_shared<OneCycleLR>(o, 2.0, 10, OneCycleOptions{.linear = true, .three_phase = true});
  };
  const Make cyclic = [](Optimizer& o) {
    return std::make_shared<CyclicLR>(o, 0.1, 1.0, CyclicOptions{.step_size_up = 2, .step_size_down = 3, .mode = "triangular2"});
  };
  const Make shrinking = [](Optimizer& o) {
    return std::make_shared<CyclicLR>(o, 0.1, 1.0, CyclicOptions{.step_size_up = 2, .mode = "exp_range", .gamma = 0.9});
  };
  return {
      {"StepLR", made<StepLR>(3, 0.5), {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125}},
      {"MultiStepLR", made<MultiStepLR>(std::vector<int64_t>{2, 5, 5}, 0.5), {0.5, 0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625}},
      {"ConstantLR", made<ConstantLR>(0.25, 3), {0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5, 0.5}},
      {"LinearLR", made<LinearLR>(0.25, 1.0, 4), {0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.5, 0.5, 0.5}},
      {"ExponentialLR", made<ExponentialLR>(0.5), {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}},
      {"PolynomialLR", made<PolynomialLR>(4, 2.0), {0.5, 0.28125, 0.125, 0.03125, 0, 0, 0, 0}},
      {"CosineAnnealingLR", made<CosineAnnealingLR>(3, 0.1), {0.5, 0.4, 0.2, 0.1, 0.2, 0.4, 0.5, 0.4}},
      {"WarmRestarts",
       made<CosineAnnealingWarmRestarts>(2, 2, 0.1),
       {0.5, 0.3, 0.5, 0.441421356237, 0.3, 0.158578643763, 0.5, 0.484775906502}},
      {"OneCycle",
       once,
       {0.08, 1.04, 2, 1.90096926403, 1.6234913079, 1.22252404387, 0.777483956127, 0.3765166921},
       {0.95, 0.9, 0.85, 0.854951556604879, 0.8688255099070633, 0.8888739533021842, 0.9111260466978157, 0.9311744900929366}},
      {"three phases", thrice, {0.08, 1.04, 2, 1.04, 0.08, 0.0640016, 0.0480032, 0.0320048}},
      {"Cyclic",
       cyclic,
       {0.1, 0.55, 1, 0.7, 0.4, 0.1, 0.325, 0.55},
       {0.9, 0.85, 0.8, 0.8333333333333334, 0.8666666666666667, 0.9, 0.875, 0.85}},
      {"exp_range", shrinking, {0.1, 0.505, 0.829, 0.42805, 0.1, 0.3657205, 0.5782969, 0.315233605}},
      {"LambdaLR",
       made<LambdaLR>([](int64_t e) { return 1.0 / static_cast<double>(e + 1); }),
       {0.5, 0.25, 0.166666666667, 0.125, 0.1, 0.0833333333333, 0.0714285714286, 0.0625}},
      {"MultiplicativeLR",
       made<MultiplicativeLR>([](int64_t e) { return e % 2 ? 0.9 : 0.5; }),
       {0.5, 0.45, 0.225, 0.2025, 0.10125, 0.091125, 0.0455625, 0.04100625}},
      {"SequentialLR", sequential, {0.05, 0.05, 0.5, 0.5, 0.25, 0.125, 0.0625, 0.03125}},
      {"ChainedScheduler", chained, {0.05, 0.025, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}},
  };
}

TEST(Schedules, FollowPyTorchEpochByEpoch) {
  for (const Case& c : cases()) {
    SGD o = two_groups();
    const auto schedule = c.make(o);
    Doubles rates, momenta;
    for (int epoch = 0; epoch < 8; ++epoch) {
      rates.push_back(o.lr(1));
      momenta.push_back(*o.momentum(0));
      EXPECT_EQ(schedule->get_last_lr()[1], o.lr(1)) << c.name;
      schedule->step();
    }
    expect_near(rates, c.rates, c.name);
    if (!c.momenta.empty()) expect_near(momenta, c.momenta, c.name);
  }
}

TEST(Schedules, GoOnWhereTheirStateWasSaved) {
  for (const Case& c : cases()) {
    SGD first = two_groups(), second = two_groups();
    const auto a = c.make(first), b = c.make(second);
    for (int epoch = 0; epoch < 3; ++epoch) a->step();
    b->load_state_dict(a->state_dict());
    for (size_t g = 0; g < 2; ++g) second.set_lr(g, first.lr(g));
    for (int epoch = 0; epoch < 3; ++epoch) {
      a->step(), b->step();
      expect_near(b->get_last_lr(), a->get_last_lr(), c.name, 0);
    }
    EXPECT_THROW(b->load_state_dict({}), ValueError) << c.name;
  }
}

TEST(Schedules, APlateauLowersTheRateAfterItsPatience) {
  SGD o = two_groups();
  ReduceLROnPlateau schedule(o, {.factor = 0.5, .patience = 1, .cooldown = 1, .min_lr = {0.3, 0.2}});
  Doubles rates;
  for (const double loss : {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1}) {
    schedule.step(loss);
    rates.push_back(o.lr(1));
  }
  EXPECT_EQ(rates, (Doubles{0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2}));
  EXPECT_THROW(schedule.step(), RuntimeError);
}

TEST(Schedules, SettingsThatMakeNoSenseAreErrors) {
  SGD o = two_groups();
  EXPECT_THROW(ConstantLR(o, 2.0), ValueError);
  EXPECT_THROW(LinearLR(o, 0.0), ValueError);
  EXPECT_THROW(CyclicLR(o, 0.1, 1.0, {.mode = "zigzag"}), ValueError);
  EXPECT_THROW(OneCycleLR(o, PerGroup({1.0, 2.0, 3.0}), 10), ValueError);
  EXPECT_THROW(SequentialLR(o, {}, {}), ValueError);
  Adadelta without({ones({1}).requires_grad_()});
  EXPECT_THROW(CyclicLR(without, 0.1, 1.0), ValueError);
}

// --- groups

TEST(ParameterGroups, EachHasItsOwnSettings) {
  const Tensor a = tensor({1.0}).requires_grad_(), b = tensor({1.0}).requires_grad_(), c = tensor({1.0}).requires_grad_();
  SGD o({a}, {.lr = 0.5});
  o.add_param_group({b}, SgdOptions{.lr = 0.25});
  o.add_param_group({c});
  (a + b + c).sum().backward();
  o.step();
  EXPECT_EQ(a.item<double>(), 0.5);
  EXPECT_EQ(b.item<double>(), 0.75);
  EXPECT_EQ(c.item<double>(), 0.5);
  EXPECT_EQ(o.groups(), 3u);
  EXPECT_TRUE(o.group_parameters(1)[0].is(b));
  o.set_lr(0.125);
  EXPECT_EQ(o.group_options(2).lr, 0.125);
  EXPECT_THROW(o.add_param_group({b}), ValueError);
  EXPECT_THROW(o.add_param_group({ones({1}).requires_grad_()}, SgdOptions{.lr = -1}), ValueError);
  EXPECT_THROW(o.lr(3), IndexError);
  EXPECT_EQ(o.parameters().size(), 3u);
}

TEST(ParameterGroups, StateGoesOnWithGroupsOfAdam) {
  const auto run = [](bool restore) {
    const Tensor a = tensor({1.0}, DType::F64).requires_grad_(), b = tensor({2.0}, DType::F64).requires_grad_();
    const auto make = [&] { return Adam(std::vector<Group<AdamOptions>>{{{a}}, {{b}, AdamOptions{.lr = 0.5}}}, {.lr = 0.1}); };
    Adam first = make();
    const auto step = [&](Adam& o) {
      o.zero_grad();
      (a * a + b * b).sum().backward();
      o.step();
    };
    step(first), step(first);
    Adam second = make();
    second.load_state_dict(first.state_dict());
    step(restore ? second : first);
    return Doubles{a.item<double>(), b.item<double>()};
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Optimizer, AClosureIsCalledWithHistoryRecordedAndItsLossReturned) {
  const Tensor p = tensor({3.0}).requires_grad_();
  SGD o({p}, 0.5);
  const NoGrad off;
  const Tensor loss = o.step([&] {
    o.zero_grad();
    const Tensor l = (p * p).sum();
    l.backward();
    return l;
  });
  EXPECT_EQ(loss.item<double>(), 9);
  EXPECT_EQ(p.item<double>(), 0);
}

// --- per-parameter optimizers

template <class O, class Options>
Doubles four_steps(Options options) {
  const Tensor p = tensor({1.0, -2.0}, DType::F64).requires_grad_();
  O o({p}, options);
  for (int i = 0; i < 4; ++i) {
    o.zero_grad();
    (p * p).sum().backward();
    o.step();
  }
  return p.to_doubles();
}

TEST(Optimizer, TheSimpleOnesGiveWhatPyTorchGives) {
  expect_near(four_steps<RMSprop>(RmspropOptions{.lr = 0.01}), {0.73538904443822, -1.7277138173016}, "RMSprop", 1e-12);
  expect_near(four_steps<RMSprop>(RmspropOptions{.lr = 0.01, .weight_decay = 0.1, .momentum = 0.5, .centered = true}),
              {0.57530301475191, -1.559990221914}, "centered", 1e-12);
  expect_near(four_steps<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1}), {0.76060184045338, -1.7546195854482}, "Adagrad", 1e-12);
  expect_near(four_steps<Adadelta>(AdadeltaOptions{.lr = 0.5, .weight_decay = 0.1}), {0.99348298292218, -1.9934784677305}, "Adadelta",
              1e-12);
  expect_near(four_steps<Adamax>(AdamaxOptions{.lr = 0.1}), {0.63097307546995, -1.6153838020864}, "Adamax", 1e-12);
  // PyTorch keeps the product of momenta in float32.
  expect_near(four_steps<NAdam>(NadamOptions{.lr = 0.1, .weight_decay = 0.1}), {0.68771604995554, -1.6781887389194}, "NAdam", 1e-6);
  expect_near(four_steps<NAdam>(NadamOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled = true}), {0.65577239652866, -1.6067455765206},
              "decoupled", 1e-6);
}

}  // namespace
}  // namespace naru
