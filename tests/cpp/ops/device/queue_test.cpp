// The queue: what is deferred, what is fused, and that results do not depend on it.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/tensor_impl.h"
#include "naru/device/memory.h"
#include "naru/ops.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/queue.h"

namespace naru {
namespace {

constexpr int64_t kLarge = 100000;  // above the immediate size

bool pending(const Tensor& t) { return t.impl()->storage->pending.load() != nullptr; }
bool in_memory(const Tensor& t) { return t.impl()->storage->data != nullptr; }

TEST(Queue, SmallWorkIsDoneAtOnce) {
  const Tensor x = ones({100});
  EXPECT_FALSE(pending(x + 1));
}

TEST(Queue, LargeElementwiseWorkIsHeldBackUntilItIsRead) {
  const Tensor x = ones({kLarge});
  const Tensor y = x * 2 + 1;
  EXPECT_TRUE(pending(y));
  EXPECT_FALSE(in_memory(y));
  EXPECT_EQ(y.slice(0, 7, 8).item<double>(), 3);
  EXPECT_FALSE(pending(y));
}

// The peak memory while f ran, beyond what was allocated before; in tensors of kLarge float32 elements.
template <class F>
double tensors_in_memory(F f) {
  const Device cpu(DeviceType::Cpu, 0);
  reset_peak_memory_stats(cpu);
  const size_t before = runtime::memory_stats(cpu).allocated();
  f();
  return std::floor(static_cast<double>(runtime::memory_stats(cpu).peak_allocated() - before) / (4.0 * kLarge));
}

TEST(Queue, ATemporaryIsNeverWrittenToMemory) {
  const Tensor x = ones({kLarge});
  x.data_ptr();
  Tensor kept, y, z;
  const double with_a_kept_one = tensors_in_memory([&] {
    kept = x * 2;
    y = kept + 1;
    y.data_ptr();
  });
  EXPECT_EQ(with_a_kept_one, 2);
  EXPECT_NE(kept.impl()->storage->data, nullptr);
  const double with_a_temporary = tensors_in_memory([&] {
    {
      const Tensor t = x * 2;
      z = t + 1;
    }
    z.data_ptr();
  });
  EXPECT_EQ(with_a_temporary, 1);
  EXPECT_EQ(z.sum().item<double>(), 3.0 * kLarge);
}

TEST(Queue, AWriteInPlaceIsSeenByWhatCameAfterAndNotByWhatCameBefore) {
  Tensor x = ones({kLarge});
  const Tensor before = x * 10;
  x.add_(1);
  const Tensor after = x * 10;
  EXPECT_EQ(before.max().item<double>(), 10);
  EXPECT_EQ(before.min().item<double>(), 10);
  EXPECT_EQ(after.max().item<double>(), 20);
  EXPECT_EQ(after.min().item<double>(), 20);
}

TEST(Queue, AReadAtOtherPositionsThanWereWrittenIsNotFused) {
  Tensor x = arange(0, kLarge, 1, DType::F32);
  x.mul_(2);
  const Tensor shifted = x.slice(0, 1, kLarge) - x.slice(0, 0, kLarge - 1);
  EXPECT_EQ(shifted.min().item<double>(), 2);
  EXPECT_EQ(shifted.max().item<double>(), 2);
  Tensor square = arange(0, 400 * 400, 1, DType::F64).reshape({400, 400});
  square.add_(square.t());
  EXPECT_EQ(square.select(0, 3).select(0, 5).item<double>(), 3 * 400 + 5 + 5 * 400 + 3);
  EXPECT_EQ(square.select(0, 399).select(0, 0).item<double>(), 399 * 400 + 399);
}

TEST(Queue, WhatReadsAnExpandedTensorReadsItBeforeItIsFilled) {
  const Tensor x = ones({100, 100});
  Tensor wide = x.expand({4, 100, 100});
  const Tensor before = wide * 2;
  wide.zero_();
  const Tensor after = wide + 1;
  EXPECT_EQ(before.sum().item<double>(), 80000);
  EXPECT_EQ(after.sum().item<double>(), 40000);
  const Tensor y = ones({kLarge});
  Tensor windows = y.as_strided({kLarge - 1, 2}, {1, 1}, 0);
  const Tensor doubled = windows * 2;
  windows.fill_(5);
  EXPECT_EQ(doubled.sum().item<double>(), 4.0 * (kLarge - 1));
}

TEST(Fill, WritesEachElementThatAViewShowsWhateverTheViewsStrides) {
  struct View {
    Dims sizes, strides;
    int64_t offset;
  };
  for (const View& v : {View{{4, 3}, {1, 1}, 2}, View{{3, 4}, {5, 2}, 0}, View{{2, 3, 4}, {3, 2, 0}, 1}, View{{5, 5}, {3, 2}, 0},
                        View{{3, 3}, {0, 0}, 7}, View{{2, 0}, {0, 1}, 0}, View{{3, 3, 3}, {7, 5, 3}, 1}}) {
    Tensor base = zeros({40}), expected = zeros({40});
    base.as_strided(v.sizes, v.strides, v.offset).fill_(3);
    expected.index_fill_(0, arange(0, 40).as_strided(v.sizes, v.strides, v.offset).contiguous().reshape({-1}), 3);
    EXPECT_TRUE(equal(base, expected)) << v.sizes.str() << v.strides.str();
  }
}

TEST(Queue, AReductionComputesATemporaryAsItIsComputed) {
  const Tensor x = ones({kLarge}), y = full({kLarge}, 2);
  x.data_ptr(), y.data_ptr();
  const auto total = [](const Tensor& t) { return t.sum(); };
  Tensor s;
  EXPECT_EQ(tensors_in_memory([&] {
              s = total(x * y + 1);
              EXPECT_TRUE(pending(s));
              EXPECT_EQ(s.item<double>(), 3.0 * kLarge);
            }),
            0);
  Tensor t;
  EXPECT_EQ(tensors_in_memory([&] {
              t = x * y;
              s = total(t + 1);
              EXPECT_EQ(s.item<double>(), 3.0 * kLarge);
            }),
            1);
  EXPECT_TRUE(in_memory(t));
}

TEST(Queue, WhatFollowsAReductionIsHeldBackBehindIt) {
  const Tensor x = ones({kLarge});
  x.data_ptr();
  Tensor mean;
  EXPECT_EQ(tensors_in_memory([&] {
              mean = (x * 3).mean();
              EXPECT_TRUE(pending(mean));
              EXPECT_EQ(mean.item<double>(), 3);
            }),
            0);
  Tensor s, y = x * 2;
  s = y.sum();
  y.add_(1);
  s.add_(y.slice(0, 0, 1).squeeze());
  EXPECT_EQ(s.item<double>(), 2.0 * kLarge + 3);
  EXPECT_EQ(y.max().item<double>(), 3);
}

TEST(Queue, AReductionReadsWhatWasThereBeforeAWriteInPlace) {
  Tensor x = ones({kLarge}), s;
  x.data_ptr();
  {
    const Tensor t = x * 2;
    x.add_(1);
    s = t.sum();
  }
  EXPECT_EQ(s.item<double>(), 2.0 * kLarge);
  EXPECT_EQ(x.min().item<double>(), 2);
}

TEST(Queue, OtherThreadsSeeWhatThisOneHoldsBack) {
  const Tensor x = ones({kLarge});
  const Tensor y = x * 3;
  ASSERT_TRUE(pending(y));
  double seen = 0;
  std::thread([&] { seen = (y + 1).sum().item<double>(); }).join();
  EXPECT_EQ(seen, 4.0 * kLarge);
}

TEST(Queue, ManyThreadsMayUseOneDevice) {
  const Tensor x = ones({kLarge});
  std::vector<double> sums(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      Tensor y = x;
      for (int k = 0; k < 20; ++k) y = (y + i) * 1.0;
      sums[i] = y.sum().item<double>();
    });
  for (auto& t : threads) t.join();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(sums[i], (1.0 + 20 * i) * kLarge);
}

TEST(Queue, UnfusedGivesTheSameBits) {
  const Tensor x = linspace(-4, 4, kLarge);
  const auto chain = [&] { return ((x * 0.3 + 1).exp() / (x.square() + 2)).to_doubles(); };
  const auto fused = chain();
  const bool before = runtime::set_fusion(false);
  const auto unfused = chain();
  runtime::set_fusion(before);
  EXPECT_EQ(fused, unfused);
}

TEST(Queue, ALongChainIsSplitWhereAGroupIsFull) {
  Tensor y = zeros({kLarge}, DType::F64);
  std::vector<Tensor> alive;
  for (int i = 0; i < 200; ++i) {
    y = y + i;
    if (i % 3 == 0) alive.push_back(y);
  }
  EXPECT_EQ(y.max().item<double>(), 199 * 200 / 2);
  EXPECT_EQ(alive[10].min().item<double>(), 30 * 31 / 2);
}

}  // namespace
}  // namespace naru
