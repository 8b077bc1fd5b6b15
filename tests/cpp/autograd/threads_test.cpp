// Leaves, graphs and hooks shared between threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "naru/autograd.h"
#include "naru/nn.h"
#include "naru/ops.h"

namespace naru {
namespace {

template <class F>
void on_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& t : threads) t.join();
}

TEST(AutogradThreads, GradientsThatThreadsAddToOneLeafAreAllThere) {
  Tensor w = ones({8}).requires_grad_();
  on_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) (w * 2).sum().backward();
  });
  EXPECT_EQ(w.grad().to_doubles(), std::vector<double>(8, 8000));
}

TEST(AutogradThreads, GraphsOfAllThreadsMayUseOneLeafAndDie) {
  Tensor w = ones({8}).requires_grad_();
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) {
      (void)(w * 3).exp();
      wrong += grad({(w * 2).sum()}, {w})[0].to_doubles() != std::vector<double>(8, 2);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(w.grad().defined());
}

TEST(AutogradThreads, OneGraphMayBeWalkedByAllThreads) {
  Tensor w = ones({8}).requires_grad_();
  const Tensor loss = (w * w * 2).sum();
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int) {
    for (int i = 0; i < 500; ++i) wrong += grad({loss}, {w}, {}, true)[0].to_doubles() != std::vector<double>(8, 4);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(AutogradThreads, AGraphThatAnotherThreadFreesGivesItsGradientOrAnError) {
  Tensor w = ones({8}).requires_grad_();
  for (int round = 0; round < 200; ++round) {
    const Tensor loss = ((w * w).exp() * w).sum();
    std::atomic<int> done = 0;
    on_threads(3, [&](int) {
      try {
        loss.backward();
        ++done;
      } catch (const RuntimeError&) {
      }
    });
    EXPECT_GE(done + 3, 3);
  }
}

TEST(AutogradThreads, ModulesAreRunForwardByManyThreads) {
  manual_seed(0);
  nn::Sequential m(nn::Linear(32, 64), nn::GELU(), nn::LayerNorm(64), nn::Linear(64, 8));
  const Tensor x = randn({8, 32});
  const std::vector<double> wanted = m(x).to_doubles();
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int) {
    for (int i = 0; i < 50; ++i) wrong += m(x).to_doubles() != wanted;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(AutogradThreads, HooksComeAndGoWhileOthersRunThem) {
  Tensor x = ones({8}).requires_grad_();
  const Tensor y = x * 2;
  const Tensor loss = y.sum();
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::thread changing([&] {
    while (!stop)
      for (const Tensor& t : {x, y}) t.remove_hook(t.register_hook([&](const Tensor& g) { return ++calls, g * 1; }));
  });
  on_threads(2, [&](int) {
    for (int i = 0; i < 500; ++i) loss.backward({}, true);
  });
  stop = true;
  changing.join();
  EXPECT_EQ(x.grad().to_doubles(), std::vector<double>(8, 2000));
}

TEST(AutogradThreads, AThreadMayReadAndReplaceAGradThatOthersAddTo) {
  Tensor w = ones({8}).requires_grad_();
  std::atomic<bool> stop = false;
  std::thread replacing([&] {
    while (!stop) {
      if (const Tensor g = w.grad(); g.defined()) {
        EXPECT_EQ(g.sizes(), w.sizes());
      }
      w.set_grad(zeros({8}));
      w.set_grad({});
    }
  });
  on_threads(2, [&](int) {
    for (int i = 0; i < 500; ++i) (w * 2).sum().backward();
  });
  stop = true;
  replacing.join();
}

TEST(AutogradThreads, AViewWhoseBaseWasWrittenIsUsedByManyThreads) {
  Tensor x = ones({8}).requires_grad_();
  std::atomic<int> wrong = 0;
  for (int round = 0; round < 50; ++round) {
    Tensor y = x * 2;
    const Tensor v = y.slice(0, 0, 4);
    y.mul_(3);
    on_threads(3, [&](int) { wrong += grad({v.sum()}, {x})[0].to_doubles() != std::vector<double>{6, 6, 6, 6, 0, 0, 0, 0}; });
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace naru
