// Hooks, retained gradients, deep graphs, and writes that autograd cannot follow.
#include <gtest/gtest.h>

#include <functional>

#include "autograd/history/accumulate.h"
#include "naru/autograd.h"
#include "naru/autograd/hooks.h"
#include "naru/ops.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::leaf;
using testing::text_of;

TEST(AutogradHooks, AHookMayTakeOutItselfAndOthersAndTheyStillRunThisOnce) {
  for (const bool of_leaf : {true, false}) {
    Tensor x = leaf({1, 2});
    const Tensor y = of_leaf ? x : x * 1;
    std::vector<int64_t> numbers;
    int calls = 0;
    for (int i = 0; i < 3; ++i)
      numbers.push_back(y.register_hook([&](const Tensor& g) {
        for (const int64_t n : numbers) y.remove_hook(n);
        ++calls;
        return g * 2;
      }));
    y.sum().backward({}, true);
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(x.grad().to_doubles(), (Doubles{8, 8}));
    y.sum().backward();
    EXPECT_EQ(calls, 3);
  }
}

TEST(AutogradHooks, QueuedCallbacksAreCalledInOrderWhenTheirPassIsOver) {
  Tensor x = leaf({1, 2});
  std::vector<int> order;
  const Tensor y = x * 1;
  y.register_hook([&](const Tensor& g) {
    queue_callback([&] {
      EXPECT_TRUE(x.grad().defined());
      order.push_back(1);
      queue_callback([&] { order.push_back(3); });
    });
    queue_callback([&] { order.push_back(2); });
    EXPECT_TRUE(order.empty());
    return g;
  });
  y.sum().backward();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_THROW(queue_callback([] {}), RuntimeError);
}

TEST(AutogradHooks, AHookAddedByAHookRunsFromTheNextPassOn) {
  Tensor x = leaf({1});
  int calls = 0;
  x.register_hook([&](const Tensor&) {
    x.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
    return Tensor();
  });
  (x * 1).backward();
  EXPECT_EQ(calls, 0);
  (x * 1).backward();
  EXPECT_EQ(calls, 1);
}

TEST(AutogradHooks, ALeafsHooksRunForGradToo) {
  Tensor x = leaf({1, 2});
  x.register_hook([](const Tensor& g) { return g * 5; });
  EXPECT_EQ(grad({x.sum()}, {x})[0].to_doubles(), (Doubles{5, 5}));
}

TEST(AutogradHooks, ALeafsHooksRunEvenWhereTheLeafIsGone) {
  Tensor x = leaf({1, 2});
  Doubles seen;
  x.register_hook([&](const Tensor& g) {
    seen = g.to_doubles();
    return Tensor();
  });
  const Tensor y = (x * 3).sum();
  x = Tensor();
  y.backward();
  EXPECT_EQ(seen, (Doubles{3, 3}));
}

TEST(AutogradHooks, AGradientOfAnotherShapeOrTypeIsRefused) {
  Tensor x = leaf({1, 2});
  const auto text = [&](const Tensor& instead) {
    const Tensor y = x * 2;
    y.register_hook([&](const Tensor&) { return instead; });
    return text_of<RuntimeError>([&] { y.sum().backward(); });
  };
  EXPECT_NE(text(ones({3}, DType::F64)).find("hook 'hook' has changed the size of value"), std::string::npos);
  EXPECT_NE(text(ones({2}, DType::F32)).find("has changed the type of value (was torch.DoubleTensor got torch.FloatTensor)"),
            std::string::npos);
  EXPECT_FALSE(x.grad().defined());
}

TEST(AutogradHooks, TheGradientBackwardStartsWithIsConvertedToTheTypeOfItsTensor) {
  Tensor x = leaf({1, 2});
  (x * 2).backward(ones({2}, DType::F32));
  EXPECT_EQ(x.grad().dtype(), DType::F64);
}

TEST(AutogradHooks, AKeptGradientIsThatOfTheTensorAsItIsLast) {
  Tensor x = leaf({1, 1});
  Tensor y = x * 3;
  y.retain_grad();
  Doubles seen;
  y.register_hook([&](const Tensor& g) {
    seen = g.to_doubles();
    return Tensor();
  });
  y.mul_(2);
  (y * y).sum().backward();
  EXPECT_EQ(y.grad().to_doubles(), (Doubles{12, 12}));
  EXPECT_EQ(seen, (Doubles{24, 24}));  // a hook stays with the value that it was registered on
}

TEST(AutogradHooks, KeptGradientsAreTheirOwn) {
  Tensor x = leaf({1, 1});
  const Tensor a = x * 1, b = a + 0;
  a.retain_grad(), b.retain_grad();
  b.sum().backward();
  a.grad().zero_();
  EXPECT_EQ(b.grad().to_doubles(), (Doubles{1, 1}));
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{1, 1}));
}

TEST(AutogradHooks, BackwardIntoAResultKeepsItsGradientAndGoesNoFurther) {
  Tensor x = leaf({1, 1});
  const Tensor y = x.exp();
  (y * y).sum().backward({}, true);
  const Doubles whole = x.grad().to_doubles();
  x.set_grad({});
  backward({(y * 3).sum()}, {}, false, false, {y});
  EXPECT_EQ(y.grad().to_doubles(), (Doubles{3, 3}));
  EXPECT_FALSE(x.grad().defined());
  (y * y).sum().backward();  // the graph that leads to y has not been freed
  EXPECT_EQ(x.grad().to_doubles(), whole);
}

TEST(AutogradHooks, GradOfNoInputsIsAnError) {
  Tensor x = leaf({1});
  EXPECT_NE(text_of<RuntimeError>([&] { grad({x * 2}, {}); }).find("`inputs` argument to `grad()` cannot be empty."), std::string::npos);
}

TEST(AutogradHooks, DeepGraphsWhoseNodesShareInputsAreWalkedAndFreedOnAnyStack) {
  Tensor x = leaf({1});
  for (const bool walk : {true, false}) {
    Tensor y = x * 1;
    for (int i = 0; i < 100000; ++i) y = y + y * 1e-6;
    if (walk) y.backward();
    y = Tensor();
  }
  EXPECT_TRUE(x.grad().defined());
}

TEST(AutogradHooks, BackwardMayBeNestedAnyNumberOfTimes) {
  int depth = 0;
  std::function<void()> nest = [&] {
    if (++depth == 2000) return;
    const EnableGrad on;
    Tensor x = leaf({1});
    const Tensor y = x * 2;
    y.register_hook([&](const Tensor&) {
      EXPECT_FALSE(grad_enabled());  // on any thread
      nest();
      return Tensor();
    });
    y.backward();
    EXPECT_EQ(x.grad().to_doubles(), Doubles{2});
  };
  nest();
  EXPECT_EQ(depth, 2000);
}

TEST(AutogradHooks, AnErrorInANestedBackwardComesThroughAllLevels) {
  std::function<void(int)> nest = [&](int depth) {
    if (depth == 200) throw IndexError("at the bottom");
    const EnableGrad on;
    Tensor x = leaf({1});
    const Tensor y = x * 2;
    y.register_hook([&](const Tensor&) { return nest(depth + 1), Tensor(); });
    y.backward();
  };
  EXPECT_THROW(nest(0), IndexError);
}

TEST(AutogradHooks, AViewMadeUnderNoGradIsNotWrittenWhileHistoryIsRecorded) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 1, view;
  {
    const NoGrad off;
    view = y.slice(0, 0, 2);
    view.mul_(2);
  }
  for (const auto& write : std::vector<std::function<void()>>{[&] { view.mul_(2); }, [&] { view.slice(0, 0, 1).zero_(); },
                                                              [&] { view.copy_(ones({2})); }, [&] { scatter_(view, 0, tensor({0}), 1.0); }})
    EXPECT_NE(text_of<RuntimeError>(write).find("A view was created in no_grad mode and is being modified inplace"), std::string::npos);
  EXPECT_EQ(y.to_doubles(), (Doubles{2, 4, 3}));
  Tensor plain = ones({3}), part;
  {
    const NoGrad off;
    part = plain.slice(0, 0, 2);
  }
  part.mul_(2);  // autograd does not record it
  EXPECT_EQ(plain.to_doubles(), (Doubles{2, 2, 1}));
}

TEST(AutogradHooks, ATensorThatTakesOverAnothersElementsLeavesGraphsTheirs) {
  Tensor x = leaf({1, 2});
  const Tensor loss = (x * x).sum();
  const Tensor now = autograd::take_over(x, ones({2}, DType::F64) * 100);
  loss.backward();
  EXPECT_EQ(now.grad().to_doubles(), (Doubles{2, 4}));
  EXPECT_TRUE(now.requires_grad() && now.is_leaf());
  const Tensor other = (now * 3).sum();
  const Tensor longer = autograd::take_over(now, ones({5}, DType::F64));
  EXPECT_NE(text_of<RuntimeError>([&] { other.backward(); }).find("its data was replaced"), std::string::npos);
}

}  // namespace
}  // namespace naru
