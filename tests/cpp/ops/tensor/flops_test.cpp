// FLOP counters.
#include "naru/flops.h"

#include <gtest/gtest.h>

#include <thread>

#include "naru/ops.h"
#include "naru/ops/convolution.h"
#include "ops/nn/attention.h"

namespace naru {
namespace {

using Counts = FlopCounter::Counts;

TEST(Flops, CountersSeeForwardAndBackwardOfTheirThread) {
  const Tensor w = ones({5, 6}).requires_grad_();
  FlopCounter all;
  const Tensor y = matmul(ones({4, 5}), w);
  {
    FlopCounter inner;
    y.sum().backward();
    EXPECT_EQ(inner.by_operator(), (Counts{{"mm", 240}}));
  }
  std::thread([&] { mm(ones({4, 5}), ones({5, 6})); }).join();
  bmm(ones({2, 3, 4}), ones({2, 4, 5}));
  EXPECT_EQ(all.by_operator(), (Counts{{"bmm", 240}, {"mm", 480}}));
  EXPECT_EQ(all.total(), 720);
  all.stop();
  all.stop();
  mm(ones({4, 5}), ones({5, 6}));
  EXPECT_EQ(all.total(), 720);
  all.start();
  mm(ones({4, 5}), ones({5, 6}));
  EXPECT_EQ(all.total(), 960);
}

TEST(Flops, AnOperatorThatCountsForItselfHidesWhatItCalls) {
  const Tensor q = ones({2, 64, 8}).requires_grad_();
  const FlopCounter counter;
  for (const int64_t rows : {0, 16}) ops::attention(q, q, q, {}, {.causal = true, .rows = rows});
  EXPECT_EQ(counter.by_operator(), (Counts{{"scaled_dot_product_attention", 2 * 2 * 2 * 64 * 64 * 16}}));
}

}  // namespace
}  // namespace naru
