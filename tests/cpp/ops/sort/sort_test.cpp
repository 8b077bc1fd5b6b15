#include <cmath>

#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

TEST(Sort, OrdersRowsAndSaysWhereElementsWere) {
  const Tensor x = tensor(Doubles{3, 1, 2, 5, 6, 4}).view({2, 3});
  const auto [values, indices] = sort(x);
  EXPECT_EQ(values.to_doubles(), (Doubles{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(indices.to_ints(), (Ints{1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(sort(x, 0, true).first.to_doubles(), (Doubles{5, 6, 4, 3, 1, 2}));
  EXPECT_EQ(sort(x.t(), 0).first.to_doubles(), (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(argsort(ints({2, 2, 1})).to_ints(), (Ints{2, 0, 1}));  // equal elements keep their order
}

TEST(Sort, CountsNanAsGreatest) {
  const Tensor x = tensor(Doubles{NAN, 1, INFINITY});
  EXPECT_EQ(argsort(x).to_ints(), (Ints{1, 2, 0}));
  EXPECT_EQ(argsort(x, -1, true).to_ints(), (Ints{0, 2, 1}));
}

TEST(Sort, TakesTensorsWithoutDimensionsAndEmptyOnes) {
  EXPECT_EQ(sort(scalar_tensor(3.0)).second.to_ints(), Ints{0});
  EXPECT_EQ(sort(zeros({2, 0})).first.sizes(), (Dims{2, 0}));
}

TEST(Sort, SendsGradientsBackToWhereElementsWere) {
  const Tensor x = tensor(Doubles{3, 1, 2, 5, 6, 4}).view({2, 3});
  expect_gradient([](const Tensor& t) { return sort(t, 0).first.square(); }, x);
  expect_gradient([](const Tensor& t) { return topk(t, 2).first.square(); }, x);
}

TEST(Topk, GivesTheFirstOfTheOrder) {
  const Tensor x = tensor(Doubles{3, 1, 2, 5, 6, 4}).view({2, 3});
  const auto [values, indices] = topk(x, 2);
  EXPECT_EQ(values.to_doubles(), (Doubles{3, 2, 6, 5}));
  EXPECT_EQ(indices.to_ints(), (Ints{0, 2, 1, 0}));
  EXPECT_EQ(topk(x, 1, 0, false).first.to_doubles(), (Doubles{3, 1, 2}));
  expect_starts(text_of<RuntimeError>([&] { topk(x, 4); }), "selected index k out of range");
}

TEST(Unique, GivesSortedValuesTheirPlacesAndCounts) {
  const auto [values, inverse, counts] = unique(ints({3, 1, 3, 2, 1, 3}, {2, 3}));
  EXPECT_EQ(values.to_ints(), (Ints{1, 2, 3}));
  EXPECT_EQ(inverse.sizes(), (Dims{2, 3}));
  EXPECT_EQ(inverse.to_ints(), (Ints{2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(counts.to_ints(), (Ints{2, 1, 3}));
  EXPECT_EQ(std::get<0>(unique(zeros(Dims{0}))).numel(), 0);
}

TEST(Bincount, CountsEachNumber) {
  EXPECT_EQ(bincount(ints({0, 3, 3})).to_ints(), (Ints{1, 0, 0, 2}));
  EXPECT_EQ(bincount(ints({1}), 3).to_ints(), (Ints{0, 1, 0}));
  EXPECT_THROW(bincount(ints({-1})), RuntimeError);
  EXPECT_THROW(bincount(ones({2})), NotImplementedError);
}

}  // namespace
}  // namespace naru
