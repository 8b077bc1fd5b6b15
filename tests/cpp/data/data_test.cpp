#include "naru/data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "naru/ops.h"

namespace naru {
namespace {

using Ints = std::vector<int64_t>;

std::shared_ptr<data::TensorDataset> ten_rows() {
  return std::make_shared<data::TensorDataset>(arange(0, 20).view({10, 2}), arange(100, 110));
}

Ints second_column(const data::DataLoader& loader) {
  Ints all;
  for (const data::Sample& batch : loader)
    for (int64_t v : batch[1].to_ints()) all.push_back(v);
  return all;
}

TEST(TensorDataset, GivesTheRowsOfItsTensors) {
  const auto data = ten_rows();
  EXPECT_EQ(data->size(), 10);
  EXPECT_EQ(data->get(3)[0].to_ints(), (Ints{6, 7}));
  const Ints numbers{9, 0};
  EXPECT_EQ(data->batch(numbers)[0].to_ints(), (Ints{18, 19, 0, 1}));
  EXPECT_EQ(data->all()[1].to_ints(), arange(100, 110).to_ints());
  EXPECT_THROW(data->get(10), IndexError);
  EXPECT_THROW(data::TensorDataset(zeros({2}), zeros({3})), ValueError);
  EXPECT_THROW(data::TensorDataset(scalar_tensor(1)), ValueError);
}

TEST(DataLoader, CutsTheDataIntoBatchesInOrder) {
  const data::DataLoader loader(ten_rows(), {.batch_size = 4});
  EXPECT_EQ(loader.size(), 3);
  std::vector<int64_t> sizes;
  for (const data::Sample& batch : loader) sizes.push_back(batch[0].size(0));
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  Ints wanted(10);
  std::iota(wanted.begin(), wanted.end(), 100);
  EXPECT_EQ(second_column(loader), wanted);
}

TEST(DataLoader, LeavesOutALastBatchThatIsNotFull) {
  const data::DataLoader loader(ten_rows(), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(second_column(loader).size(), 8u);
  // A batch larger than the data set: no batches.
  EXPECT_EQ(second_column(data::DataLoader(ten_rows(), {.batch_size = 11, .drop_last = true})).size(), 0u);
}

TEST(DataLoader, ShufflesAnewInEachPassAndTheSameWayForTheSameSeed) {
  manual_seed(3);
  const data::DataLoader loader(ten_rows(), {.batch_size = 3, .shuffle = true});
  const Ints first = second_column(loader), second = second_column(loader);
  EXPECT_NE(first, second);
  Ints sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, arange(100, 110).to_ints());
  manual_seed(3);
  EXPECT_EQ(second_column(loader), first);

  Generator a(5), b(5);
  EXPECT_EQ(second_column(data::DataLoader(ten_rows(), {.shuffle = true, .generator = &a})),
            second_column(data::DataLoader(ten_rows(), {.shuffle = true, .generator = &b})));
}

TEST(DataLoader, OverNothingIsAnError) {
  try {
    data::DataLoader loader(std::make_shared<data::TensorDataset>(zeros({0, 2})));
    FAIL() << "a loader over nothing was made";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("num_samples=0"), std::string::npos) << e.what();
  }
  EXPECT_THROW(data::DataLoader(ten_rows(), {.batch_size = 0}), ValueError);
  EXPECT_THROW(data::DataLoader(std::shared_ptr<const data::Dataset>()), ValueError);
}

// Counts to five, one sample at a time.
struct Counting : data::Dataset {
  int64_t size() const override { return 5; }
  data::Sample get(int64_t i) const override { return {scalar_tensor(i), full({2}, i)}; }
};

TEST(DataLoader, StacksTheSamplesOfADataSetOfOnesOwn) {
  const data::DataLoader loader(std::make_shared<Counting>(), {.batch_size = 3});
  const data::Sample batch = *loader.begin();
  EXPECT_EQ(batch[0].to_ints(), (Ints{0, 1, 2}));
  EXPECT_EQ(batch[1].sizes(), (Dims{3, 2}));
}

TEST(RandomSplit, SharesOutEverySampleOnce) {
  Generator generator(1);
  const auto parts = data::random_split(ten_rows(), {7, 3}, &generator);
  EXPECT_EQ(parts[0]->size(), 7);
  Ints all = parts[0]->all()[1].to_ints();
  for (int64_t v : parts[1]->all()[1].to_ints()) all.push_back(v);
  EXPECT_NE(all, arange(100, 110).to_ints());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, arange(100, 110).to_ints());
  EXPECT_THROW(data::random_split(ten_rows(), {7, 4}), ValueError);
  EXPECT_THROW(parts[1]->get(3), IndexError);
}

}  // namespace
}  // namespace naru
