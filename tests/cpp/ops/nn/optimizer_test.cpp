#include <cmath>

#include "ops/gradients.h"

namespace naru {
namespace {

using test::expect_error;
using test::numbers;
using Doubles = std::vector<double>;

void expect_near(const Tensor& got, const Doubles& wanted, double tolerance) {
  const Doubles v = got.to_doubles();
  ASSERT_EQ(v.size(), wanted.size());
  for (size_t i = 0; i < v.size(); ++i) ASSERT_NEAR(v[i], wanted[i], tolerance) << "element " << i;
}

TEST(Sgd, FollowsItsFormulaInEveryForm) {
  for (int form = 0; form < 16; ++form) {
    SgdOptions o;
    o.lr = 0.1;
    o.momentum = form & 1 ? 0.9 : 0;
    o.nesterov = (form & 3) == 3;
    o.dampening = (form & 1) && !o.nesterov ? 0.25 : 0;
    o.weight_decay = form & 4 ? 0.01 : 0;
    o.maximize = form & 8;
    // Small and large, contiguous and not.
    const std::vector<Tensor> params = {numbers({3}), numbers({100, 90}).t()};
    std::vector<Tensor> momenta;
    std::vector<Doubles> p, b(2);
    for (const Tensor& t : params) p.push_back(t.to_doubles());
    for (int step = 0; step < 3; ++step) {
      std::vector<Tensor> grads;
      for (const Tensor& t : params) grads.push_back(numbers(t.sizes(), -1, 1, static_cast<uint64_t>(step) + 9));
      sgd_step(params, grads, momenta, o);
      for (size_t k = 0; k < 2; ++k) {
        const Doubles g0 = grads[k].to_doubles();
        b[k].resize(g0.size());
        for (size_t i = 0; i < g0.size(); ++i) {
          double g = o.maximize ? -g0[i] : g0[i];
          g += o.weight_decay * p[k][i];
          if (o.momentum != 0) {
            b[k][i] = step == 0 ? g : o.momentum * b[k][i] + (1 - o.dampening) * g;
            g = o.nesterov ? g + o.momentum * b[k][i] : b[k][i];
          }
          p[k][i] -= o.lr * g;
        }
        expect_near(params[k], p[k], 1e-14);
      }
    }
  }
}

TEST(Adam, FollowsItsFormulaInEveryForm) {
  for (int form = 0; form < 16; ++form) {
    AdamOptions o;
    o.lr = 0.01;
    o.weight_decay = form & 1 ? 0.1 : 0;
    o.decoupled = form & 2;
    o.amsgrad = form & 4;
    o.maximize = form & 8;
    const std::vector<Tensor> params = {numbers({3}), numbers({100, 90})};
    std::vector<Tensor> m, v, most;
    std::vector<Doubles> p, m0, v0, most0;
    for (const Tensor& t : params) {
      for (auto* list : {&m, &v, &most}) list->push_back(zeros_like(t));
      p.push_back(t.to_doubles());
      for (auto* list : {&m0, &v0, &most0}) list->push_back(Doubles(p.back().size(), 0.0));
    }
    for (int step = 1; step <= 3; ++step) {
      std::vector<Tensor> grads;
      for (const Tensor& t : params) grads.push_back(numbers(t.sizes(), -1, 1, static_cast<uint64_t>(step)) * (1.0 / step));
      adam_step(params, grads, m, v, most, step, o);
      for (size_t k = 0; k < 2; ++k) {
        const Doubles g0 = grads[k].to_doubles();
        for (size_t i = 0; i < g0.size(); ++i) {
          double g = o.maximize ? -g0[i] : g0[i];
          if (o.decoupled)
            p[k][i] *= 1 - o.lr * o.weight_decay;
          else
            g += o.weight_decay * p[k][i];
          m0[k][i] = o.beta1 * m0[k][i] + (1 - o.beta1) * g;
          v0[k][i] = o.beta2 * v0[k][i] + (1 - o.beta2) * g * g;
          most0[k][i] = std::max(most0[k][i], v0[k][i]);
          const double root = std::sqrt(o.amsgrad ? most0[k][i] : v0[k][i]) / std::sqrt(1 - std::pow(o.beta2, step));
          p[k][i] -= o.lr / (1 - std::pow(o.beta1, step)) * m0[k][i] / (root + o.eps);
        }
        expect_near(params[k], p[k], 1e-13);
      }
    }
  }
}

TEST(OptimizerSteps, CountAsWritesAndLeaveParametersWithoutGradientAlone) {
  Tensor x = ones({3}).requires_grad_(), y = ones({2}).requires_grad_();
  const uint32_t before = x.version();
  std::vector<Tensor> momenta;
  sgd_step({x, y}, {ones({3}), Tensor()}, momenta, {});
  EXPECT_GT(x.version(), before);
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(y.to_doubles(), (Doubles{1, 1}));
  expect_error<RuntimeError>([&] { sgd_step({x}, {ones({2})}, momenta, {}); },
                             "SGD: the gradient of parameter 0 has shape [2], the parameter [3]");
  expect_error<ValueError>([&] { adam_step({x}, {ones({3})}, {ones({3})}, {ones({3})}, {}, 0, {}); }, "Adam: step counts from 1, got 0");
}

TEST(OptimizerSteps, ReachTheLeastOfAParabola) {
  Tensor x = tensor(Doubles{3, -2}).requires_grad_();
  std::vector<Tensor> m{zeros({2})}, v{zeros({2})};
  for (int step = 1; step <= 400; ++step) {
    x.set_grad({});
    sum(x * x).backward();
    adam_step({x}, {x.grad()}, m, v, {}, step, {.lr = 0.1});
  }
  expect_near(x, {0, 0}, 1e-2);
}

}  // namespace
}  // namespace naru
