// Graphs: capturing runs nothing, and replays give the same bits as running directly, on every device.
#include "naru/device/graph.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "core/tensor_impl.h"
#include "naru/device/devices.h"
#include "naru/device/virtual.h"
#include "naru/nn.h"
#include "naru/ops.h"
#include "naru/optim.h"
#include "naru/random.h"
#include "ops/checks.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"

namespace naru {
namespace {

using testing::expect_starts;
using testing::text_of;

// Runs on cpu and on virtual devices that execute late.
struct Graphs : ::testing::TestWithParam<const char*> {
  Graphs() { set_virtual_devices("cuda:2(launch_delay=200us;copy_delay=300us)"); }
  ~Graphs() override { set_virtual_devices(""); }
  Device device{GetParam()};
  Options on{DType::F32, device};
};
std::string named(const ::testing::TestParamInfo<const char*>& info) { return info.param[1] == 'p' ? "cpu" : "virtual"; }
INSTANTIATE_TEST_SUITE_P(Devices, Graphs, ::testing::Values("cpu", "cuda:0"), named);

void expect_same(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.sizes(), wanted.sizes());
  const Tensor a = got.detach().cpu().contiguous(), b = wanted.detach().cpu().contiguous();
  EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<size_t>(a.numel()) * size_of(a.dtype())), 0);
}

// Elementwise chains, reductions, products, index operators, sorting.
std::vector<Tensor> many_operators(const Tensor& x) {
  const Tensor chain = tanh(x * 2 + 1) - exp(-x);
  const Tensor product = matmul(chain, x.t());
  const Tensor order = argsort(sum(x, Dims{1}));
  return {chain, product, softmax(product, -1), x.max(), index_select(x, 0, order), cumsum(x, 0), mean((x > 0).to(DType::F32), Dims{0})};
}

TEST_P(Graphs, AReplayGivesTheBitsOfDoingItAtOnce) {
  for (const int64_t n : {5, 300}) {
    Tensor x = zeros({n, n}, on);
    std::vector<Tensor> results;
    Graph g;
    g.capture([&] { results = many_operators(x); }, device);
    EXPECT_GT(g.size(), 5u);
    for (int i = 0; i < 3; ++i) {
      const Tensor batch = randn({n, n}, on);
      x.copy_(batch);
      g.replay();
      const std::vector<Tensor> wanted = many_operators(batch);
      for (size_t k = 0; k < wanted.size(); ++k) expect_same(results[k], wanted[k]);
    }
  }
}

TEST_P(Graphs, NothingIsDoneBeforeTheFirstReplay) {
  Tensor x = ones({3}, on);
  Graph g;
  g.capture([&] { x.add_(1); }, device);
  EXPECT_EQ(x.to_doubles(), (testing::Doubles{1, 1, 1}));
  for (int i = 0; i < 4; ++i) g.replay();
  EXPECT_EQ(x.to_doubles(), (testing::Doubles{5, 5, 5}));
}

TEST_P(Graphs, WorkBeforeAndBehindAReplayKeepsItsPlace) {
  Tensor x = ones({100000}, on), y = zeros({100000}, on);
  Graph g;
  g.capture([&] { y.add_(x); }, device);
  for (int i = 1; i <= 3; ++i) {
    x.fill_(i);
    g.replay();
    y.mul_(2);
  }
  EXPECT_EQ(y[99999].item<double>(), ((1 * 2 + 2) * 2 + 3) * 2);
}

TEST_P(Graphs, StepsOfACaptureAreFusedAsAlways) {
  Tensor x = ones({10}, on);
  Tensor y;
  Graph g;
  g.capture([&] { y = ((x + 1) * 2 - 3).sqrt(); }, device);
  EXPECT_EQ(g.size(), 1u);
  g.replay();
  EXPECT_EQ(y[9].item<double>(), 1);
}

TEST_P(Graphs, EachReplayDrawsTheNumbersOfTheProgramDoneAtOnce) {
  Tensor x = ones({50}, on);
  Tensor kept, noise;
  const auto work = [&] {
    kept = dropout(x, 0.5, true);
    noise = randn({50}, on) + rand({50}, on);
  };
  manual_seed(7);
  Graph g;
  g.capture(work, device);
  EXPECT_EQ(default_generator().offset(), 0u);
  const Tensor recorded = noise;
  std::vector<Tensor> got;
  for (int i = 0; i < 3; ++i) {
    g.replay();
    got.push_back(kept.clone()), got.push_back(noise.clone());
    got.push_back(rand({4}, on));
  }
  manual_seed(7);
  for (int i = 0; i < 3; ++i) {
    work();
    expect_same(got[static_cast<size_t>(3 * i)], kept);
    expect_same(got[static_cast<size_t>(3 * i + 1)], noise);
    expect_same(got[static_cast<size_t>(3 * i + 2)], rand({4}, on));
  }
  manual_seed(11);
  g.replay();
  const Tensor other = recorded.clone();
  manual_seed(11);
  work();
  expect_same(other, noise);
}

template <class Optimizer, class Options_>
void expect_training_to_be_the_same(Device device, const Options_& options) {
  const auto model_of = [&] {
    manual_seed(3);
    nn::Sequential m(nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 1));
    m.to(device);
    return m;
  };
  const Options on(DType::F32, device);
  Tensor xs = randn({12, 4, 2}, on), ys = randn({12, 4, 1}, on);
  nn::Sequential eager = model_of(), graphed = model_of();
  Optimizer a(eager.parameters(), options), b(graphed.parameters(), options);
  Tensor x = xs[0].clone(), y = ys[0].clone();
  Tensor loss;
  Graph g;
  for (int64_t i = 0; i < 12; ++i) {
    a.zero_grad();
    const Tensor wanted = mse_loss(eager(xs[i]), ys[i]);
    wanted.backward();
    a.step();
    x.copy_(xs[i]), y.copy_(ys[i]);
    const auto step = [&] {
      b.zero_grad();
      loss = mse_loss(graphed(x), y);
      loss.backward();
      b.step();
    };
    // The first step creates the optimizer's state.
    if (i == 0) {
      step();
    } else {
      if (i == 1) g.capture(step, device);
      g.replay();
    }
    expect_same(loss, wanted);
  }
  for (size_t p = 0; p < eager.parameters().size(); ++p) expect_same(graphed.parameters()[p], eager.parameters()[p]);
}

TEST_P(Graphs, AWholeTrainingStepCanBeReplayed) {
  expect_training_to_be_the_same<optim::SGD>(device, SgdOptions{.lr = 0.1, .momentum = 0.9});
  expect_training_to_be_the_same<optim::Adam>(device, AdamOptions{.lr = 0.1, .capturable = true});
}

TEST_P(Graphs, StepsCountedOnTheDeviceAreToldByTheState) {
  Tensor p = ones({3}, on).requires_grad_();
  optim::Adam adam({p}, AdamOptions{.capturable = true});
  Graph g;
  const auto step = [&] { adam.zero_grad(), p.sum().backward(), adam.step(); };
  EXPECT_THROW(g.capture(step, device), RuntimeError);  // each replay would create its state again
  step();
  g.capture(step, device);
  g.replay(), g.replay();
  const optim::Optimizer::State state = adam.state_dict();
  EXPECT_EQ(state[0].second.to_ints(), (testing::Ints{3}));
  adam.load_state_dict(state);
  step();
  EXPECT_EQ(adam.state_dict()[0].second.to_ints(), (testing::Ints{4}));
}

TEST_P(Graphs, AdamSaysThatItsStepsAreCountedOnTheHost) {
  Tensor p = ones({3}, on).requires_grad_();
  optim::Adam adam({p});
  p.sum().backward(), adam.step();
  Graph g;
  const std::string text = text_of<RuntimeError>([&] { g.capture([&] { p.sum().backward(), adam.step(); }, device); });
  EXPECT_NE(text.find("Attempting CUDA graph capture of step() for an instance of Adam"), std::string::npos);
}

TEST_P(Graphs, ReplayedWorkMayTouchTensorsThatDied) {
  Tensor x = ones({5000}, on);
  Tensor y;
  Graph g;
  g.capture(
      [&] {
        const Tensor t = cumsum(x, 0);
        y = matmul(t.view(Dims{50, 100}), t.view(Dims{100, 50})).sum();
      },
      device);
  // Memory allocated now must not be that of the captured temporary.
  std::vector<Tensor> others;
  for (int i = 0; i < 20; ++i) others.push_back(full({5000}, 7, on));
  g.replay();
  for (const Tensor& o : others) EXPECT_EQ(o.min().item<double>(), 7);
  const Tensor t = cumsum(x, 0);
  expect_same(y, matmul(t.view(Dims{50, 100}), t.view(Dims{100, 50})).sum());
}

TEST_P(Graphs, TemporariesShareMemoryWithinTheCaptureAndWithNobodyElse) {
  const auto allocated = [&] { return runtime::memory_stats(runtime::resolve(device)).allocated(); };
  constexpr int64_t kSize = 100000;
  const auto work = [](const Tensor& x) {
    Tensor t = x;
    for (int i = 0; i < 20; ++i) t = cumsum(t, 0) * 0.001 + (i % 2 ? x : t);
    return t;
  };
  Tensor x = rand({kSize}, on), out;
  x.data_ptr();
  const size_t before = allocated();
  {
    Graph g;
    g.capture([&] { out = work(x); }, device);
    EXPECT_LE(allocated(), before + 5 * kSize * sizeof(float));
    for (int i = 0; i < 3; ++i) {
      x.copy_(rand({kSize}, on));
      const Tensor others[] = {full({kSize}, 7, on), full({kSize}, 8, on)};
      g.replay();
      expect_same(out, work(x));
      EXPECT_EQ(others[0].min().item<double>() + others[1].max().item<double>(), 15);
    }
  }
  // The graph is destroyed; its result is still valid.
  const Tensor sum = cumsum(out, 0), wanted = cumsum(work(x), 0);
  out = Tensor();
  for (int i = 0; i < 5; ++i) full({kSize}, i, on).data_ptr();
  expect_same(sum, wanted);
}

TEST_P(Graphs, ResetGivesTheMemoryBack) {
  const auto allocated = [&] { return runtime::memory_stats(runtime::resolve(device)).allocated(); };
  Tensor x = ones({50000}, on);
  x.data_ptr();
  const size_t before = allocated();
  Graph g;
  g.capture([&] { cumsum(cumsum(x, 0), 0); }, device);
  g.replay();
  EXPECT_GE(allocated(), before + 2 * 200000);
  g.reset();
  EXPECT_EQ(allocated(), before);
  EXPECT_FALSE(g.captured());
  g.capture([&] { x.add_(1); }, device);
  g.replay();
  EXPECT_EQ(x[0].item<double>(), 2);
}

TEST_P(Graphs, TheHostCannotLookInACapture) {
  Tensor x = ones({3}, on);
  Tensor y;
  Graph g;
  g.begin(device);
  y = x + 1;
  const std::string kind = device.is_cpu() ? "CPU" : "CUDA";
  expect_starts(text_of<RuntimeError>([&] { y.sum().item(); }), kind + " error: operation not permitted when stream is capturing");
  EXPECT_THROW(x[0].item(), RuntimeError);
  EXPECT_THROW(y.to_doubles(), RuntimeError);
  if (!device.is_cpu()) {
    EXPECT_THROW(synchronize(device), RuntimeError);
    EXPECT_THROW(Stream::current(device).synchronize(), RuntimeError);
  }
  expect_starts(text_of<RuntimeError>([&] { g.end(); }), kind + " error: operation failed due to a previous error during capture");
  EXPECT_FALSE(g.captured());
  EXPECT_EQ(x[0].item<double>(), 1);
  g.capture([&] { y = x + 2; }, device);
  g.replay();
  EXPECT_EQ(y[0].item<double>(), 3);
}

TEST_P(Graphs, MisuseIsToldInPlainWords) {
  Graph g, other;
  EXPECT_EQ(text_of<RuntimeError>([&] { g.replay(); }), "Graph: replay() called without a preceding successful capture");
  EXPECT_THROW(g.end(), RuntimeError);
  Tensor x = ones({3}, on);
  g.begin(device);
  EXPECT_TRUE(is_capturing(device));
  EXPECT_NE(text_of<RuntimeError>([&] { other.begin(device); }).find("captures are not nested"), std::string::npos);
  x.add_(1);
  g.end();
  EXPECT_FALSE(is_capturing(device));
  EXPECT_THROW(g.begin(device), RuntimeError);
  EXPECT_THROW(other.capture(
                   [&] {
                     x.add_(1);
                     throw ValueError("mine");
                   },
                   device),
               ValueError);
  EXPECT_FALSE(is_capturing(device));
  EXPECT_EQ(x[0].item<double>(), 1);
  Generator mine(5);
  EXPECT_THROW(other.capture([&] { rand({3}, on, &mine); }, device), RuntimeError);
}

TEST_P(Graphs, AReplayInACaptureIsRecorded) {
  Tensor x = zeros({3}, on), noise = zeros({3}, on);
  Graph inner, outer;
  inner.capture(
      [&] {
        x.add_(1);
        noise.copy_(rand({3}, on));
      },
      device);
  outer.capture([&] { inner.replay(), x.mul_(2), inner.replay(); }, device);
  EXPECT_EQ(x[0].item<double>(), 0);
  manual_seed(5);
  outer.replay();
  EXPECT_EQ(x[0].item<double>(), 3);
  const Tensor got = noise.clone();
  manual_seed(5);
  rand({3}, on);
  expect_same(got, rand({3}, on));
}

TEST_P(Graphs, AnEmptyGraphDoesNothing) {
  Graph g;
  g.capture([] {}, device);
  EXPECT_TRUE(g.captured());
  EXPECT_EQ(g.size(), 0u);
  g.replay();
}

TEST_P(Graphs, AnotherThreadMayReplay) {
  Tensor x = ones({3}, on);
  Graph g;
  g.capture([&] { x.add_(1); }, device);
  std::thread([&] { g.replay(); }).join();
  g.replay();
  EXPECT_EQ(x[0].item<double>(), 3);
}

TEST(GraphsOnCpu, WhatTheHostWritesInACaptureStandsThereInEachReplay) {
  Tensor x = ones({2});
  Tensor total, constant;
  Graph g;
  g.capture(
      [&] {
        total = tensor(std::vector<double>{10, 20});
        constant = tensor(std::vector<double>{1, 2});
        total.add_(x + constant);
      },
      "cpu");
  for (int i = 0; i < 2; ++i) {
    g.replay();
    EXPECT_EQ(total.to_doubles(), (testing::Doubles{12, 23}));
  }
}

TEST(GraphsOnCpu, ConstantsOfTheHostSurviveInMemoryThatTemporariesHadBefore) {
  const std::vector<double> values(5000, 3);
  Tensor x = ones({5000}), first, second;
  Graph g;
  g.capture(
      [&] {
        first = cumsum(cumsum(x, 0), 0) * 2;
        const Tensor constant = tensor(values, Options(DType::F64));
        second = first.to(DType::F64) * constant;
      },
      "cpu");
  for (int i = 0; i < 2; ++i) {
    g.replay();
    EXPECT_EQ(second[1].item<double>(), 18);
  }
  Graph other;
  EXPECT_THROW(other.capture(
                   [&] {
                     Tensor constant = tensor(values);
                     second = x * constant;
                     *static_cast<float*>(constant.data_ptr()) = 5;  // replays would use this value in the product
                   },
                   "cpu"),
               RuntimeError);
}

TEST(GraphsOnCpu, AReplayTellsOfABadIndex) {
  Tensor table = ones({4, 2}), index = zeros({3}, Options(DType::I64));
  Tensor rows;
  Graph g;
  g.capture([&] { rows = embedding(table, index); }, "cpu");
  g.replay();
  EXPECT_EQ(rows.sum().item<double>(), 6);
  index.fill_(9);
  EXPECT_THROW(g.replay(), IndexError);
  index.fill_(3);
  g.replay();
}

}  // namespace
}  // namespace naru
