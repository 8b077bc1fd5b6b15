#include "naru/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/device/devices.h"
#include "naru/nn.h"

namespace naru {
namespace {

using Doubles = std::vector<double>;

// A parameter p with the loss sum(p * p).
struct Job {
  Tensor p = tensor(Doubles{1, -2}, Options(DType::F64)).requires_grad_();
  void run(optim::Optimizer& o, int steps) {
    for (int i = 0; i < steps; ++i) {
      o.zero_grad();
      (p * p).sum().backward();
      o.step();
    }
  }
};

void expect_near(const Tensor& t, const Doubles& wanted) {
  const Doubles got = t.to_doubles();
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12 * std::abs(wanted[i])) << i;
}

Doubles sgd_by_hand(Doubles p, int steps, const SgdOptions& o) {
  Doubles v(p.size());
  for (int s = 0; s < steps; ++s)
    for (size_t i = 0; i < p.size(); ++i) {
      double g = 2 * p[i];
      if (o.maximize) g = -g;
      g += o.weight_decay * p[i];
      v[i] = s == 0 ? g : o.momentum * v[i] + (1 - o.dampening) * g;
      p[i] -= o.lr * (o.momentum == 0 ? g : o.nesterov ? g + o.momentum * v[i] : v[i]);
    }
  return p;
}

TEST(SGD, FollowsItsFormulaWithEveryOption) {
  for (const SgdOptions& o :
       {SgdOptions{.lr = 0.1}, SgdOptions{.lr = 0.1, .momentum = 0.9}, SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5},
        SgdOptions{.lr = 0.1, .weight_decay = 0.2}, SgdOptions{.lr = 0.1, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true},
        SgdOptions{.lr = 0.01, .maximize = true}}) {
    Job job;
    optim::SGD sgd({job.p}, o);
    job.run(sgd, 4);
    expect_near(job.p, sgd_by_hand({1, -2}, 4, o));
  }
}

Doubles adam_by_hand(Doubles p, int steps, const AdamOptions& o) {
  Doubles m(p.size()), v(p.size()), greatest(p.size());
  for (int s = 1; s <= steps; ++s)
    for (size_t i = 0; i < p.size(); ++i) {
      double g = 2 * p[i];
      if (o.maximize) g = -g;
      if (o.decoupled)
        p[i] *= 1 - o.lr * o.weight_decay;
      else
        g += o.weight_decay * p[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      greatest[i] = std::max(greatest[i], v[i]);
      const double second = (o.amsgrad ? greatest[i] : v[i]) / (1 - std::pow(o.beta2, s));
      p[i] -= o.lr * (m[i] / (1 - std::pow(o.beta1, s))) / (std::sqrt(second) + o.eps);
    }
  return p;
}

TEST(Adam, FollowsItsFormulaWithEveryOption) {
  for (const AdamOptions& o :
       {AdamOptions{.lr = 0.1}, AdamOptions{.lr = 0.1, .weight_decay = 0.3}, AdamOptions{.lr = 0.1, .weight_decay = 0.3, .decoupled = true},
        AdamOptions{.lr = 0.1, .amsgrad = true}, AdamOptions{.lr = 0.1, .beta1 = 0.5, .beta2 = 0.7, .maximize = true}}) {
    Job job;
    optim::Adam adam({job.p}, o);
    job.run(adam, 5);
    expect_near(job.p, adam_by_hand({1, -2}, 5, o));
  }
  Job job;
  optim::AdamW adamw({job.p}, 0.1);
  job.run(adamw, 3);
  expect_near(job.p, adam_by_hand({1, -2}, 3, {.lr = 0.1, .weight_decay = 0.01, .decoupled = true}));
}

TEST(Optimizer, LeavesOutParametersWithoutAGradient) {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_();
  optim::Adam adam({a, b}, 0.1);
  a.sum().backward();
  adam.step();
  EXPECT_LT(a.to_doubles()[0], 1);
  EXPECT_EQ(b.to_doubles(), (Doubles{1, 1}));
  // b's step is its first, however many a has done.
  b.sum().backward();
  adam.step();
  EXPECT_NEAR(b.to_doubles()[0], 0.9, 1e-6);
}

TEST(Optimizer, ZeroGradForgetsOrZeroes) {
  Tensor p = ones({2}).requires_grad_();
  optim::SGD sgd({p}, 0.1);
  p.sum().backward();
  sgd.zero_grad(false);
  EXPECT_EQ(p.grad().to_doubles(), (Doubles{0, 0}));
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

TEST(Optimizer, ContinuesFromASavedState) {
  const auto make = [] { return tensor(Doubles{1, -2}, Options(DType::F64)).requires_grad_(); };
  Job whole, before;
  optim::Adam one({whole.p}, 0.1), two({before.p}, 0.1);
  whole.run(one, 6);
  before.run(two, 3);
  Job after;
  after.p = make();
  after.p.detach().copy_(before.p.detach());
  optim::Adam three({after.p}, 0.1);
  three.load_state_dict(two.state_dict());
  after.run(three, 3);
  EXPECT_EQ(after.p.to_doubles(), whole.p.to_doubles());
  // The state is a copy: further steps of the first optimizer do not change it.
  before.run(two, 1);
  after.run(three, 0);
  EXPECT_EQ(after.p.to_doubles(), whole.p.to_doubles());
}

TEST(Optimizer, AStateThatDoesNotFitIsAnError) {
  Tensor p = ones({2}).requires_grad_();
  optim::SGD sgd({p}, 0.1);
  const Tensor step = tensor(std::vector<int64_t>{1});
  EXPECT_THROW(sgd.load_state_dict({}), RuntimeError);
  EXPECT_THROW(sgd.load_state_dict({{"step", step}, {"momentum_buffer.0", zeros({3})}}), RuntimeError);
  EXPECT_THROW(sgd.load_state_dict({{"step", step}, {"exp_avg.0", zeros({2})}}), RuntimeError);
}

TEST(Optimizer, RefusesValuesThatMakeNoSense) {
  Tensor p = ones({2}).requires_grad_();
  EXPECT_THROW(optim::SGD({}, 0.1), ValueError);
  EXPECT_THROW(optim::SGD({p}, -0.1), ValueError);
  EXPECT_THROW(optim::SGD({p}, {.lr = 0.1, .nesterov = true}), ValueError);
  EXPECT_THROW(optim::Adam({p}, {.beta1 = 1.0}), ValueError);
  EXPECT_THROW(optim::SGD({p * 2.0}, 0.1), ValueError);
  EXPECT_THROW(optim::SGD({p, p}, 0.1), ValueError);
}

TEST(Optimizer, FollowsAModelThatMovesBetweenSteps) {
  set_virtual_devices("cuda:1");
  nn::Linear stays(3, 2), moves(3, 2);
  moves.load_state_dict(stays.state_dict());
  optim::Adam a(stays.parameters(), 0.1), b(moves.parameters(), 0.1);
  const Tensor x = ones({4, 3});
  for (int i = 0; i < 4; ++i) {
    if (i == 2) moves.to("cuda");
    a.zero_grad(), b.zero_grad();
    stays(x).square().sum().backward();
    moves(x.to(moves.weight.device())).square().sum().backward();
    a.step(), b.step();
  }
  EXPECT_EQ(moves.weight.cpu().to_doubles(), stays.weight.to_doubles());
}

}  // namespace
}  // namespace naru
