// Attention by blocks of rows: the same as all rows at once, forward and backward.
#include "ops/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/autograd.h"
#include "naru/naru.h"

namespace naru {
namespace {

const Options kDouble(DType::F64);

// Returns the result and the gradients of q, k, v and, if it requires grad, the mask.
std::vector<Tensor> run(int64_t rows, bool causal, const Tensor& mask, double dropout = 0) {
  manual_seed(3);
  const Tensor q = randn({2, 1, 7, 4}, kDouble).requires_grad_(), k = randn({3, 5, 4}, kDouble).requires_grad_(),
               v = randn({2, 3, 5, 2}, kDouble).requires_grad_();
  Tensor m = mask;
  if (mask.defined() && mask.dtype() != DType::Bool) m = mask.detach().clone().requires_grad_();
  const Tensor out = ops::attention(q, k, v, m, {.scale = 0.5, .causal = causal, .dropout = dropout, .rows = rows});
  (out * arange(0, out.numel(), 1, kDouble).view(out.sizes()).sin()).sum().backward();
  std::vector<Tensor> all{out.detach(), q.grad(), k.grad(), v.grad()};
  if (m.defined() && m.requires_grad()) all.push_back(m.grad());
  return all;
}

Tensor some_hidden() {
  Tensor mask = ones({1, 7, 5}, Options(DType::Bool));
  mask.select(1, 2).fill_(false);  // a fully masked row
  mask.select(2, 4).fill_(false);
  return mask;
}

TEST(Attention, BlocksOfRowsGiveWhatAllRowsGive) {
  const Tensor added = sin(arange(0, 35, 1, kDouble).view({7, 5}));
  struct Case {
    bool causal;
    Tensor mask;
  };
  for (const Case& c :
       {Case{false, {}}, Case{true, {}}, Case{false, some_hidden()}, Case{false, added}, Case{false, added.narrow(0, 0, 1)}}) {
    const std::vector<Tensor> whole = run(7, c.causal, c.mask);
    for (const int64_t rows : {1, 2, 3, 5}) {
      const std::vector<Tensor> parts = run(rows, c.causal, c.mask);
      ASSERT_EQ(parts.size(), whole.size());
      for (size_t i = 0; i < whole.size(); ++i)
        EXPECT_TRUE(allclose(parts[i], whole[i], 1e-12, 1e-14)) << "rows " << rows << ", part " << i;
    }
  }
}

TEST(Attention, ARowThatSeesNothingIsZeroAndHasNoGradient) {
  for (const int64_t rows : {2, 7}) {
    const std::vector<Tensor> all = run(rows, false, some_hidden());
    EXPECT_EQ(all[0].select(2, 2).abs().max().item<double>(), 0);
    EXPECT_EQ(all[1].select(2, 2).abs().max().item<double>(), 0);
    EXPECT_TRUE(isfinite(all[2]).min().item<bool>());
  }
}

TEST(Attention, BackwardDropsTheWeightsThatForwardDropped) {
  // By finite differences: the same seed gives the same draws.
  for (const int64_t rows : {2, 7}) {
    const Tensor q = sin(arange(0, 28, 1, kDouble).view({7, 4})), k = cos(arange(0, 20, 1, kDouble).view({5, 4})),
                 v = sin(arange(3, 13, 1, kDouble).view({5, 2}));
    const auto loss = [&](const Tensor& at) {
      manual_seed(11);
      return ops::attention(at, k, v, {}, {.dropout = 0.4, .rows = rows}).sum();
    };
    const Tensor leaf = q.clone().requires_grad_();
    loss(leaf).backward();
    for (const int64_t place : {0, 13, 27}) {
      Tensor up = q.clone(), down = q.clone();
      up.view({28})[place] += 1e-5, down.view({28})[place] -= 1e-5;
      const double slope = (loss(up).item<double>() - loss(down).item<double>()) / 2e-5;
      EXPECT_NEAR(leaf.grad().view({28})[place].item<double>(), slope, 1e-8) << rows << " " << place;
    }
    manual_seed(11);
    const Tensor kept = ops::attention(q, k, eye(5).to(DType::F64), {}, {.dropout = 0.4, .rows = rows});
    const int64_t zeros = count_nonzero(eq(kept, 0)).item<int64_t>();
    EXPECT_TRUE(zeros > 3 && zeros < 30) << zeros;
  }
}

TEST(Attention, GradientsHaveGradients) {
  const Tensor k = cos(arange(0, 12, 1, kDouble).view({4, 3})), v = sin(arange(3, 11, 1, kDouble).view({4, 2}));
  std::vector<Tensor> seconds;
  for (const int64_t rows : {2, 5}) {
    const Tensor q = sin(arange(0, 15, 1, kDouble).view({5, 3})).requires_grad_();
    const Tensor key = k.clone().requires_grad_();
    const Tensor out = ops::attention(q, key, v, {}, {.causal = true, .rows = rows});
    const Tensor g = grad({(out * out).sum()}, {q}, {}, true, true)[0];
    seconds.push_back(grad({(g * g).sum()}, {key})[0]);
  }
  EXPECT_TRUE(allclose(seconds[0], seconds[1], 1e-10, 1e-12));
  EXPECT_GT(seconds[0].abs().max().item<double>(), 1e-3);
}

}  // namespace
}  // namespace naru
