#include "naru/nn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/autograd.h"
#include "naru/device/devices.h"

namespace naru {
namespace {

using Doubles = std::vector<double>;

struct Net : nn::Module {
  std::shared_ptr<nn::Linear> first = register_module("first", nn::Linear(3, 4));
  std::shared_ptr<nn::Sequential> rest = register_module("rest", nn::Sequential(nn::ReLU(), nn::Linear(4, 2, false)));
  Tensor scale = register_parameter("scale", ones({2}));
  Tensor seen = register_buffer("seen", zeros({1}, DType::I64));
  Tensor forward(const Tensor& x) override {
    seen.add_(1);
    return (*rest)((*first)(x)) * scale;
  }
  std::string name() const override { return "Net"; }
};

std::vector<std::string> names(const nn::NamedTensors& list) {
  std::vector<std::string> v;
  for (const auto& [name, t] : list) v.push_back(name);
  return v;
}

TEST(Module, ListsParametersAndBuffersByTheirPlaces) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()), (std::vector<std::string>{"scale", "first.weight", "first.bias", "rest.1.weight"}));
  EXPECT_EQ(names(net.named_parameters(false)), std::vector<std::string>{"scale"});
  EXPECT_EQ(names(net.state_dict()), (std::vector<std::string>{"scale", "seen", "first.weight", "first.bias", "rest.1.weight"}));
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad());
  for (const Tensor& b : net.buffers()) EXPECT_FALSE(b.requires_grad());
}

TEST(Module, ATensorSharedByTwoModulesIsListedOnce) {
  nn::Sequential s;
  const auto shared = std::make_shared<nn::Linear>(2, 2);
  s.push_back(shared);
  s.push_back(shared);
  EXPECT_EQ(s.parameters().size(), 2u);
  EXPECT_EQ(s.state_dict().size(), 4u);
}

TEST(Module, GradientsReachEveryParameter) {
  Net net;
  net(randn({5, 3})).square().sum().backward();
  for (const auto& [name, p] : net.named_parameters()) {
    ASSERT_TRUE(p.grad().defined()) << name;
    EXPECT_EQ(p.grad().sizes(), p.sizes()) << name;
  }
  net.zero_grad();
  for (const Tensor& p : net.parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(Module, MovesInPlaceSoThatHandlesToItsParametersStayRight) {
  set_virtual_devices("cuda:1");
  Net net;
  const Tensor handle = net.first->weight;
  const Doubles before = handle.to_doubles();
  const Tensor x = ones({2, 3});
  const Doubles wanted = net(x).to_doubles();
  net.to("cuda");
  EXPECT_EQ(handle.device().str(), "cuda:0");
  EXPECT_TRUE(net.parameters()[1].is(handle));
  EXPECT_TRUE(handle.is_leaf());
  EXPECT_EQ(handle.cpu().to_doubles(), before);
  const Tensor y = net(x.cuda());
  EXPECT_EQ(y.device().str(), "cuda:0");
  EXPECT_EQ(y.cpu().to_doubles(), wanted);
  y.sum().backward();
  EXPECT_EQ(handle.grad().device().str(), "cuda:0");
  EXPECT_EQ(net.seen.cpu().to_ints(), std::vector<int64_t>{2});
}

TEST(Module, ChangesTheDtypeOfFloatingPointTensorsOnly) {
  Net net;
  net(ones({1, 3})).sum().backward();
  net.to(DType::F64);
  EXPECT_EQ(net.scale.dtype(), DType::F64);
  EXPECT_EQ(net.scale.grad().dtype(), DType::F64);
  EXPECT_EQ(net.seen.dtype(), DType::I64);
  EXPECT_EQ(net(ones({1, 3}, DType::F64)).dtype(), DType::F64);
  EXPECT_THROW(net.to(DType::I32), TypeError);
}

TEST(Module, TrainAndEvalReachAllModules) {
  nn::Sequential s(nn::Linear(2, 2), nn::Sequential(nn::Dropout(0.5)));
  s.eval();
  int training = 0, all = 0;
  s.apply([&](nn::Module& m) { training += m.is_training(), ++all; });
  EXPECT_EQ(training, 0);
  EXPECT_EQ(all, 4);
  s.train();
  EXPECT_TRUE(s[0].is_training());
}

TEST(Module, LoadsWhatAnotherSaved) {
  Net a, b;
  b.load_state_dict(a.state_dict());
  const Tensor x = randn({4, 3});
  EXPECT_EQ(a(x).to_doubles(), b(x).to_doubles());
  EXPECT_FALSE(a.first->weight.is(b.first->weight));
}

TEST(Module, AStateThatDoesNotFitIsAnErrorAndChangesNothing) {
  nn::Linear l(2, 3);
  const Doubles before = l.weight.to_doubles();
  try {
    l.load_state_dict({{"weight", zeros({3, 2})}, {"extra", zeros({1})}});
    FAIL() << "a state without bias was loaded";
  } catch (const RuntimeError& e) {
    EXPECT_EQ(std::string(e.what()),
              "Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: \"bias\". \n\tUnexpected "
              "key(s) in state_dict: \"extra\". ");
  }
  EXPECT_THROW(l.load_state_dict({{"weight", zeros({2, 2})}}, false), RuntimeError);
  EXPECT_EQ(l.weight.to_doubles(), before);
  l.load_state_dict({{"bias", ones({3})}}, false);
  EXPECT_EQ(l.bias.to_doubles(), (Doubles{1, 1, 1}));
}

TEST(Module, NamesAreUniqueAndWithoutDots) {
  nn::Module m;
  m.register_parameter("w", ones({1}));
  EXPECT_THROW(m.register_buffer("w", ones({1})), ValueError);
  EXPECT_THROW(m.register_buffer("a.b", ones({1})), ValueError);
  EXPECT_THROW(m.register_buffer("", ones({1})), ValueError);
  EXPECT_THROW(m.forward(ones({1})), NotImplementedError);
}

TEST(Module, PrintsItselfAsATree) {
  EXPECT_EQ(nn::Sequential(nn::Linear(784, 256), nn::ReLU()).str(),
            "Sequential(\n  (0): Linear(in_features=784, out_features=256, bias=True)\n  (1): ReLU()\n)");
}

TEST(Containers, HoldModulesInOrderOrByName) {
  nn::ModuleList list;
  list.push_back(nn::Linear(2, 3));
  list.push_back(nn::Tanh());
  EXPECT_EQ(names(list.named_parameters()), (std::vector<std::string>{"0.weight", "0.bias"}));
  EXPECT_EQ(list[1].name(), "Tanh");
  EXPECT_THROW(list[2], IndexError);
  nn::ModuleDict dict;
  dict.insert("act", nn::Sigmoid());
  EXPECT_TRUE(dict.contains("act"));
  EXPECT_EQ(dict["act"](zeros({1})).to_doubles(), Doubles{0.5});
  EXPECT_THROW(dict["other"], IndexError);
}

TEST(Linear, ComputesXTimesWeightTransposedPlusBias) {
  nn::Linear l(2, 3);
  l.load_state_dict({{"weight", arange(0, 6, 1, DType::F32).view({3, 2})}, {"bias", tensor(Doubles{1, 2, 3})}});
  EXPECT_EQ(l(tensor(Doubles{1, 2}).view({1, 2})).to_doubles(), (Doubles{3, 10, 17}));
}

TEST(Linear, StartsUniformWithinOneOverTheRootOfItsInputs) {
  manual_seed(1);
  nn::Linear l(400, 300);
  const double bound = 1 / std::sqrt(400.0);
  for (const Tensor& t : l.parameters()) {
    EXPECT_LE(abs(t).max().item<double>(), bound);
    EXPECT_GE(abs(t).max().item<double>(), 0.95 * bound);
  }
  // The mean of 120,000 values with standard deviation bound / sqrt(3) is within five of its own standard deviations.
  EXPECT_NEAR(l.weight.mean().item<double>(), 0, 5 * bound / std::sqrt(3.0 * 120000));
  EXPECT_NEAR(std(l.weight).item<double>(), bound / std::sqrt(3.0), 0.01 * bound);
}

TEST(Linear, TheSameSeedGivesTheSameWeights) {
  manual_seed(7);
  nn::Linear a(5, 4);
  manual_seed(7);
  nn::Linear b(5, 4);
  EXPECT_EQ(a.weight.to_doubles(), b.weight.to_doubles());
  EXPECT_EQ(a.bias.to_doubles(), b.bias.to_doubles());
}

TEST(Embedding, TakesRowsAndSparesThePaddingRow) {
  nn::Embedding e(4, 3, 1);
  EXPECT_EQ(e.weight[1].to_doubles(), (Doubles{0, 0, 0}));
  const Tensor y = e(tensor(std::vector<int64_t>{3, 1, 3}));
  EXPECT_EQ(y[0].to_doubles(), e.weight[3].to_doubles());
  y.sum().backward();
  EXPECT_EQ(e.weight.grad().to_doubles(), (Doubles{0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2}));
  EXPECT_THROW(nn::Embedding(4, 3, 4), ValueError);
}

TEST(LayerNorm, GivesRowsOfMeanZeroAndVarianceOne) {
  nn::LayerNorm norm(8);
  const Tensor y = norm(randn({3, 8}) * 4.0 + 2.0);
  for (double m : mean(y, Dims{1}).to_doubles()) EXPECT_NEAR(m, 0, 1e-6);
  for (double v : var(y, Dims{1}, 0).to_doubles()) EXPECT_NEAR(v, 1, 1e-3);
  EXPECT_EQ(nn::LayerNorm({2, 3}).str(), "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=True)");
}

TEST(Dropout, ActsInTrainingOnly) {
  nn::Dropout d(0.5);
  const Tensor x = ones({1000});
  const double kept = d(x).sum().item<double>() / 2;
  EXPECT_GT(kept, 400);
  EXPECT_LT(kept, 600);
  d.eval();
  EXPECT_EQ(d(x).sum().item<double>(), 1000);
  EXPECT_THROW(nn::Dropout(1.5), ValueError);
}

TEST(Losses, AreTheFunctionsOfTheirNames) {
  const Tensor scores = tensor(Doubles{1, 2, 3, 1, 1, 1}).view({2, 3}), classes = tensor(std::vector<int64_t>{2, 0});
  const double first = -std::log(std::exp(3.0) / (std::exp(1.0) + std::exp(2.0) + std::exp(3.0))), second = std::log(3.0);
  EXPECT_NEAR(nn::CrossEntropyLoss()(scores, classes).item<double>(), (first + second) / 2, 1e-6);
  EXPECT_NEAR(nn::CrossEntropyLoss(Reduction::Sum)(scores, classes).item<double>(), first + second, 1e-6);
  EXPECT_EQ(nn::MSELoss()(tensor(Doubles{1, 2}), tensor(Doubles{3, 2})).item<double>(), 2);
}

}  // namespace
}  // namespace naru
