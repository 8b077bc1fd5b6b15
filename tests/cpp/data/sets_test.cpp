// Data sets built from others, transforms, collate functions, batches of indices.
#include <gtest/gtest.h>

#include "naru/data.h"
#include "naru/ops.h"

namespace naru {
namespace {

using namespace data;
using Doubles = std::vector<double>;

std::shared_ptr<TensorDataset> rows(double from, double to) { return std::make_shared<TensorDataset>(arange(from, to, 1.0, DType::F64)); }

Doubles first_of_all(const DataLoader& loader) {
  Doubles list;
  for (const Sample& batch : loader)
    for (const double v : batch[0].to_doubles()) list.push_back(v);
  return list;
}

TEST(DataSets, AreConcatenatedAndStacked) {
  const ConcatDataset both({rows(0, 2), rows(10, 13)});
  EXPECT_EQ(both.size(), 5);
  EXPECT_EQ(both.get(1)[0].item<double>(), 1);
  EXPECT_EQ(both.get(2)[0].item<double>(), 10);
  EXPECT_EQ(both.all()[0].to_doubles(), (Doubles{0, 1, 10, 11, 12}));
  EXPECT_THROW(both.get(5), IndexError);
  const StackDataset pairs({rows(0, 2), rows(5, 7)});
  EXPECT_EQ(pairs.get(1).size(), 2u);
  EXPECT_EQ(pairs.get(1)[1].item<double>(), 6);
  EXPECT_THROW(StackDataset({rows(0, 2), rows(0, 3)}), ValueError);
  EXPECT_THROW(ConcatDataset({}), ValueError);
}

TEST(DataSets, AreChangedByTransformsAsTheyAreRead) {
  const auto doubled = std::make_shared<MapDataset>(rows(0, 3), [](Sample s) { return Sample{s[0] * 2, s[0]}; });
  EXPECT_EQ(doubled->all()[0].to_doubles(), (Doubles{0, 2, 4}));
  const auto image = std::make_shared<TensorDataset>(ones({2, 2, 3}, DType::F64));
  const MapDataset normal(image, normalize({1, 0}, {1, 4}));
  EXPECT_EQ(normal.get(0)[0].to_doubles(), (Doubles{0, 0, 0, 0.25, 0.25, 0.25}));
}

struct Range : IterableDataset {
  int from, to;
  Range(int a, int b) : from(a), to(b) {}
  std::function<Sample()> begin() const override {
    return [i = from, end = to]() mutable -> Sample { return i < end ? Sample{tensor(static_cast<double>(i++))} : Sample{}; };
  }
};

TEST(DataSets, ThatCountNothingAreChained) {
  const auto chain = std::make_shared<ChainDataset>(std::vector<std::shared_ptr<const IterableDataset>>{
      std::make_shared<Range>(0, 2), std::make_shared<Range>(3, 3), std::make_shared<Range>(7, 9)});
  EXPECT_EQ(first_of_all(DataLoader(chain, {.batch_size = 3})), (Doubles{0, 1, 7, 8}));
}

TEST(DataSets, BatchesAreMadeByTheProgramsFunctionWithWorkersToo) {
  const Collate largest = [](const std::vector<Sample>& samples) {
    Sample s{samples[0][0]};
    for (const Sample& each : samples) s[0] = maximum(s[0], each[0]);
    return Sample{s[0].view({1})};
  };
  for (const int workers : {0, 2}) {
    LoaderOptions options;
    options.batch_size = 3, options.num_workers = workers, options.collate = largest;
    EXPECT_EQ(first_of_all(DataLoader(rows(0, 7), options)), (Doubles{2, 5, 6}));
  }
}

TEST(DataSets, AreSplitBySharesToo) {
  const auto parts = random_split(rows(0, 7), {0.5, 0.25, 0.25});
  EXPECT_EQ(parts[0]->size(), 4);
  EXPECT_EQ(parts[1]->size() + parts[2]->size(), 3);
  EXPECT_THROW(random_split(rows(0, 7), {0.5, 0.25}), ValueError);
}

TEST(DataSets, NumbersComeInBatches) {
  const auto order = std::make_shared<SequentialSampler>(5);
  EXPECT_EQ(BatchSampler(order, 2).pass(), (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(BatchSampler(order, 2, true).pass().size(), 2u);
  EXPECT_EQ(BatchSampler(order, 2).size(), 3);
  EXPECT_THROW(BatchSampler(order, 0), ValueError);
}

}  // namespace
}  // namespace naru
