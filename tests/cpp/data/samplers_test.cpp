// Samplers: which indices they give, in which order.
#include "naru/data/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "naru/data.h"
#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

using Ints = std::vector<int64_t>;

Ints sorted(Ints v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST(Samplers, SequentialAndRandomTakeEachSampleOnce) {
  EXPECT_EQ(SequentialSampler(4).pass(), (Ints{0, 1, 2, 3}));
  const RandomSampler random(50);
  const Ints first = random.pass();
  EXPECT_EQ(sorted(first), SequentialSampler(50).pass());
  EXPECT_NE(first, random.pass());
}

TEST(Samplers, ARandomSamplerMayTakeFewerOrMoreThanThereAre) {
  Generator generator(3);
  const Ints more = RandomSampler(5, false, 13, &generator).pass();
  ASSERT_EQ(more.size(), 13u);
  EXPECT_EQ(sorted(Ints(more.begin(), more.begin() + 5)), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(sorted(Ints(more.begin() + 5, more.begin() + 10)), (Ints{0, 1, 2, 3, 4}));
  const Ints drawn = RandomSampler(3, true, 70000, &generator).pass();
  EXPECT_EQ(drawn.size(), 70000u);
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()), (std::set<int64_t>{0, 1, 2}));
}

TEST(Samplers, ASubsetComesInRandomOrder) {
  Generator a(1), b(1);
  const SubsetRandomSampler subset({4, 8, 9, 30, 31, 32}, &a);
  const Ints order = subset.pass();
  EXPECT_EQ(sorted(order), (Ints{4, 8, 9, 30, 31, 32}));
  EXPECT_EQ(order, SubsetRandomSampler({4, 8, 9, 30, 31, 32}, &b).pass());
}

TEST(Samplers, WeightsAreProbabilities) {
  const WeightedRandomSampler sampler(tensor(std::vector<double>{0, 1, 3}), 4000);
  const Ints drawn = sampler.pass();
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0), 0);
  // 0.75 of 4000; the tolerance is exceeded in one run of 10^12.
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 2)), 3000, 200);
  EXPECT_EQ(sorted(WeightedRandomSampler(tensor(std::vector<double>{1, 2, 3}), 3, false).pass()), (Ints{0, 1, 2}));
}

TEST(Samplers, ProcessesShareOutADataSet) {
  Ints all;
  for (int64_t rank : {0, 1, 2}) {
    const Ints mine = DistributedSampler(7, 3, rank, false).pass();
    EXPECT_EQ(mine.size(), 3u);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(all), (Ints{0, 0, 1, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(DistributedSampler(7, 3, 1, false, 0, true).pass(), (Ints{1, 4}));
  EXPECT_EQ(DistributedSampler(1, 3, 2, false).pass(), (Ints{0}));
  DistributedSampler random(40, 1, 0);
  const Ints first = random.pass();
  EXPECT_EQ(first, random.pass());
  random.set_epoch(1);
  EXPECT_NE(first, random.pass());
}

TEST(Samplers, OneOfOnesOwnGivesTheLoadersOrder) {
  struct Backwards : Sampler {
    Ints pass() const override { return {4, 3, 1}; }
    int64_t size() const override { return 3; }
  };
  const auto data = std::make_shared<TensorDataset>(arange(0, 50, 10));
  for (const int workers : {0, 2}) {
    const DataLoader loader(data, {.batch_size = 2, .num_workers = workers, .sampler = std::make_shared<Backwards>()});
    EXPECT_EQ(loader.size(), 2);
    std::vector<Ints> batches;
    for (const Sample& batch : loader) batches.push_back(batch[0].to_ints());
    EXPECT_EQ(batches, (std::vector<Ints>{{40, 30}, {10}}));
  }
}

// tests/python/data/test_data.py has the same numbers.
TEST(Samplers, TheSameSeedGivesTheOrderOfTheLoaderInPython) {
  const auto data = std::make_shared<TensorDataset>(arange(0, 10));
  manual_seed(3);
  for (const int workers : {0, 1}) {
    const DataLoader loader(data, {.batch_size = 10, .shuffle = true, .num_workers = workers});
    EXPECT_EQ((*loader.begin())[0].to_ints(), workers ? (Ints{6, 4, 9, 8, 7, 3, 0, 1, 2, 5}) : (Ints{9, 8, 1, 5, 2, 0, 7, 6, 4, 3}));
  }
  Generator own(5);
  const DataLoader seeded(data, {.batch_size = 10, .shuffle = true, .generator = &own});
  EXPECT_EQ((*seeded.begin())[0].to_ints(), (Ints{7, 5, 1, 3, 9, 4, 6, 2, 8, 0}));
}

TEST(Samplers, WhatMeansNothingIsAnError) {
  EXPECT_THROW(RandomSampler(0), ValueError);
  EXPECT_THROW(RandomSampler(0, true, 3), ValueError);
  EXPECT_THROW(RandomSampler(3, false, 0), ValueError);
  EXPECT_THROW(WeightedRandomSampler(zeros({2, 2}), 1), ValueError);
  EXPECT_THROW(WeightedRandomSampler(ones({2}), 0), ValueError);
  EXPECT_THROW(DistributedSampler(3, 2, 2), ValueError);
  const auto data = std::make_shared<TensorDataset>(arange(0, 5));
  EXPECT_THROW(DataLoader(data, {.shuffle = true, .sampler = std::make_shared<SequentialSampler>(5)}), ValueError);
}

}  // namespace
}  // namespace naru::data
