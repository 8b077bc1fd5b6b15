// The optimizers of naru/optim.h. Python tests compare the values with PyTorch; they call the same steps.
#include "naru/optim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "naru/io/checkpoint.h"
#include "naru/naru.h"

namespace naru {
namespace {

Tensor leaf(std::vector<double> values, Dims shape = {}) {
  Tensor t = tensor(values, Options(DType::F64));
  if (!shape.empty()) t = t.view(shape);
  return t.clone().requires_grad_();
}

void set_gradient(const Tensor& p, int64_t t) {
  p.set_grad(sin(arange(0, p.numel(), 1, Options(DType::F64)) * static_cast<double>(t + 1)).view(p.sizes()));
}

// Runs steps from..to of an optimizer with one parameter.
template <class O>
void steps(O& optimizer, const Tensor& p, int64_t from, int64_t to) {
  for (int64_t t = from; t < to; ++t) {
    set_gradient(p, t);
    optimizer.step();
  }
}

template <class O, class Opt>
void expect_to_go_on(const Opt& options) {
  const Tensor p = leaf({1, -2, 0.5, 3, 1, 2}, {2, 3}), q = leaf({1, -2, 0.5, 3, 1, 2}, {2, 3}), r = leaf({0, 0, 0, 0, 0, 0}, {2, 3});
  O whole({p}, options), half({q}, options), rest({r}, Opt{});
  steps(whole, p, 0, 5);
  steps(half, q, 0, 3);
  {
    const NoGrad off;
    r.copy_(q);
  }
  load_state(rest, state_of(half));  // in PyTorch's format
  steps(rest, r, 3, 5);
  EXPECT_EQ(p.to_doubles(), r.to_doubles());
}

TEST(MoreOptimizers, GoOnFromASavedState) {
  expect_to_go_on<optim::RAdam>(optim::RadamOptions{.lr = 0.1, .weight_decay = 0.1});
  expect_to_go_on<optim::Rprop>(optim::RpropOptions{.lr = 0.1, .eta_plus = 1.5});
  expect_to_go_on<optim::ASGD>(optim::AsgdOptions{.lr = 0.1, .lambd = 0.1, .t0 = 1});
  expect_to_go_on<optim::Adafactor>(optim::AdafactorOptions{.lr = 0.1, .d = 2});
  expect_to_go_on<optim::Muon>(optim::MuonOptions{.lr = 0.1, .momentum = 0.5});
}

TEST(MoreOptimizers, RefuseSettingsOutOfRange) {
  EXPECT_THROW(optim::RAdam({leaf({1})}, {.beta1 = 1}), ValueError);
  EXPECT_THROW(optim::Rprop({leaf({1})}, {.eta_plus = 0.5}), ValueError);
  EXPECT_THROW(optim::ASGD({leaf({1})}, {.lambd = -1}), ValueError);
  EXPECT_THROW(optim::Adafactor({leaf({1})}, {.d = 0.5}), ValueError);
  EXPECT_THROW(optim::Muon({leaf({1})}), ValueError);
  EXPECT_THROW(optim::LBFGS({leaf({1})}, {.lr = -1}), ValueError);
}

// A complex parameter is updated like a real one with its real and imaginary parts as elements, also after restoring a saved state.
template <class O, class Opt>
void expect_as_pairs(const Opt& options) {
  const Tensor pairs = leaf({1, -2, 0.5, 3, 1, 2}, {3, 2}), p = view_as_complex(pairs.detach().clone()).requires_grad_();
  const Tensor later = zeros_like(p.detach()).requires_grad_();
  O real({pairs}, options), whole({p}, options), rest({later}, options);
  const auto steps = [&](O& optimizer, const Tensor& at, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      const Tensor g = sin(arange(0, 6, 1, Options(DType::F64)) * static_cast<double>(t + 1)).view({3, 2});
      at.set_grad(is_complex(at.dtype()) ? view_as_complex(g) : g);
      optimizer.step();
    }
  };
  steps(real, pairs, 0, 5);
  steps(whole, p, 0, 3);
  for (const auto& [name, t] : whole.state_dict())
    if (name.ends_with(".0") && !name.starts_with("group")) EXPECT_TRUE(is_complex(t.dtype()) && t.sizes() == p.sizes()) << name;
  {
    const NoGrad off;
    later.copy_(p);
  }
  load_state(rest, state_of(whole));  // in PyTorch's format
  steps(whole, p, 3, 5);
  steps(rest, later, 3, 5);
  EXPECT_EQ(view_as_real(p.detach()).to_doubles(), pairs.to_doubles());
  EXPECT_EQ(view_as_real(later.detach()).to_doubles(), pairs.to_doubles());
  EXPECT_EQ(whole.parameters()[0].dtype(), kComplex128);
}

TEST(MoreOptimizers, UpdateComplexParametersAsPairs) {
  expect_as_pairs<optim::SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  expect_as_pairs<optim::Adam>(AdamOptions{.lr = 0.1, .amsgrad = true});
  expect_as_pairs<optim::AdamW>(AdamOptions{.lr = 0.1, .weight_decay = 0.1});
  expect_as_pairs<optim::RMSprop>(optim::RmspropOptions{.lr = 0.1, .momentum = 0.5, .centered = true});
  expect_as_pairs<optim::Adagrad>(optim::AdagradOptions{.lr = 0.1});
  expect_as_pairs<optim::Adadelta>(optim::AdadeltaOptions{.lr = 0.1});
  expect_as_pairs<optim::Adamax>(optim::AdamaxOptions{.lr = 0.1});
  expect_as_pairs<optim::NAdam>(optim::NadamOptions{.lr = 0.1});
  expect_as_pairs<optim::RAdam>(optim::RadamOptions{.lr = 0.1});
  expect_as_pairs<optim::Rprop>(optim::RpropOptions{.lr = 0.1});
  expect_as_pairs<optim::ASGD>(optim::AsgdOptions{.lr = 0.1, .t0 = 1});
}

TEST(MoreOptimizers, SomeRefuseComplexParameters) {
  const Tensor p = ones({2, 2}, Options(kComplex64)).requires_grad_();
  p.set_grad(ones({2, 2}, Options(kComplex64)));
  EXPECT_THROW(optim::Adafactor({p}).step(), RuntimeError);
  EXPECT_THROW(optim::Muon({p}).step(), RuntimeError);
  EXPECT_THROW(optim::SparseAdam({p}).step(), RuntimeError);
}

TEST(Lbfgs, TakesComplexParameters) {
  const Tensor p = view_as_complex(tensor({3.0, -1.0, 0.5, 2.0}, Options(DType::F64)).view({2, 2})).clone().requires_grad_();
  const Tensor aim = view_as_complex(tensor({1.0, 2.0, -3.0, 0.0}, Options(DType::F64)).view({2, 2}));
  optim::LBFGS optimizer({p}, {.strong_wolfe = true});
  for (int n = 0; n < 3; ++n)
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor off = p - aim, loss = real(off * conj(off)).sum();
      loss.backward();
      return loss;
    });
  EXPECT_TRUE(allclose(p.detach(), aim));
}

TEST(Lbfgs, FindsTheLeastPlaceOfAValley) {
  const Tensor p = leaf({-1.5, 2});
  optim::LBFGS optimizer({p}, {.strong_wolfe = true});
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    optimizer.zero_grad();
    const Tensor a = 1 - p[0], b = p[1] - p[0] * p[0];
    const Tensor loss = a * a + b * b * 100;
    loss.backward();
    return loss;
  };
  EXPECT_EQ(optimizer.step(closure).item<double>(), 12.5);
  for (int i = 0; i < 3; ++i) optimizer.step(closure);
  EXPECT_NEAR(p[0].item<double>(), 1, 1e-5);
  EXPECT_NEAR(p[1].item<double>(), 1, 1e-5);
  EXPECT_LT(calls, 80);
  EXPECT_THROW(optimizer.step(), RuntimeError);
}

TEST(FusedBatchNorm, GivesWhatTheLayerAndTheNormGive) {
  manual_seed(0);
  nn::Conv2d conv(2, 3, {3});
  nn::BatchNorm2d norm(3);
  norm(conv(randn({4, 2, 5, 5})));
  norm.eval();
  const auto [w, b] = nn::utils::fuse_conv_bn_weights(
      conv.weight, conv.bias,
      {norm.get_buffer("running_mean"), norm.get_buffer("running_var"), norm.get_parameter("weight"), norm.get_parameter("bias")});
  const Tensor x = randn({1, 2, 5, 5});
  EXPECT_TRUE(allclose(conv2d(x, w, b), norm(conv(x)), 1e-5, 1e-6));
  EXPECT_THROW(nn::utils::fuse_conv_bn_weights(ones({3}), {}, {ones({3}), ones({3})}), RuntimeError);
}

}  // namespace
}  // namespace naru
