// What docs/extending.md says, tried: a backend, an operator and a module of one file each.
#include <gtest/gtest.h>

#include "naru/error.h"
#include "naru/naru.h"
#include "toy_operator.h"

namespace naru {
namespace {

const Device kToy("rocm:0");

TEST(Extending, ABackendOfOneFileDoesAllThatTheCpuDoesWithTheSameBits) {
  manual_seed(1);
  const Tensor x = randn({33, 65}), w = randn({65, 7});
  const auto work = [](const Tensor& x, const Tensor& w) {
    const Tensor y = tanh(x.matmul(w)) * 2 + 1;
    return std::vector<Tensor>{y, y.sum(Dims{1}), softmax(y, -1), sort(y, -1).first};
  };
  const auto expected = work(x, w), got = work(x.to(kToy), w.to(kToy));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].device(), kToy);
    EXPECT_TRUE(equal(got[i].to("cpu"), expected[i])) << i;
  }
}

TEST(Extending, TensorsOfTheToyAndOfTheCpuDoNotMix) { EXPECT_THROW(ones({2, 2}).to(kToy) + ones({2, 2}), DeviceMismatchError); }

TEST(Extending, AnOperatorHasItsGradientAndTheGradientOfThatOnEveryDevice) {
  for (const Device device : {Device("cpu"), kToy}) {
    Tensor x = tensor({1.5, -2.0, 3.0}).to(device).detach().requires_grad_();
    const Tensor g = naru::grad({toy::scaled_square(x, 4).sum()}, {x}, {}, true, true)[0];
    EXPECT_TRUE(equal(g.detach().to("cpu"), tensor({12.0, -16.0, 24.0}).to(g.dtype())));
    g.sum().backward();
    EXPECT_TRUE(equal(x.grad().to("cpu"), full({3}, 8).to(g.dtype())));
  }
  EXPECT_THROW(toy::scaled_square(ones({2}, DType::I64), 1), TypeError);
}

TEST(Extending, AModuleTrains) {
  toy::Bump bump(3);
  bump.to(kToy);
  optim::SGD sgd(bump.parameters(), 0.1);
  const Tensor x = full({4, 3}, 2.0).to(kToy);
  double before = 0, after = 0;
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = bump.forward(x).mean();
    (step == 0 ? before : after) = loss.item<double>();
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace naru
