// Quantiles, histograms and searchsorted, from C++.
#include <gtest/gtest.h>

#include <cmath>

#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_starts;
using testing::text_of;

TEST(Search, QuantilesLieBetweenSortedElements) {
  const Tensor t = tensor({3.0, 1.0, 2.0, 5.0});
  EXPECT_EQ(quantile(t, 0.5).item<double>(), 2.5);
  EXPECT_EQ(t.quantile(tensor({0.0, 1.0})).to_doubles(), (Doubles{1, 5}));
  EXPECT_EQ(quantile(t, 0.5, 0, true, "lower").to_doubles(), (Doubles{2}));
  EXPECT_EQ(quantile(t.reshape({2, 2}), 0.5, 1).to_doubles(), (Doubles{2, 3.5}));
  EXPECT_TRUE(std::isnan(quantile(tensor({1.0, NAN}), 0).item<double>()));
  EXPECT_EQ(quantile(t.reshape({2, 2}), zeros({0}), 0, true).sizes(), (Dims{0, 1, 2}));
  expect_starts(text_of<RuntimeError>([&] { quantile(t, 1.5); }), "quantile() q values must be in the range [0, 1]");
  expect_starts(text_of<RuntimeError>([&] { quantile(t, 0.5, {}, false, "up"); }), "quantile() interpolation must be one of linear");
  expect_starts(text_of<RuntimeError>([] { quantile(tensor({1}), 0.5); }), "quantile() input tensor must be either float or double");
}

TEST(Search, AQuantileHasGradients) {
  Tensor t = tensor({3.0, 1.0, 2.0, 5.0});
  t.requires_grad_();
  quantile(t, 0.5).backward();
  EXPECT_EQ(t.grad().to_doubles(), (Doubles{0.5, 0, 0.5, 0}));
}

TEST(Search, KthvalueCountsFromTheLeast) {
  const auto [value, place] = tensor({3.0, 1.0, 2.0}).kthvalue(2);
  EXPECT_EQ(value.item<double>(), 2);
  EXPECT_EQ(place.item<int64_t>(), 2);
  expect_starts(text_of<RuntimeError>([] { kthvalue(zeros({3}), 4); }), "kthvalue(): selected number k out of range for dimension -1: 4");
}

TEST(Search, HistogramsCountWhatLiesInTheirRange) {
  const Tensor t = tensor({0.0, 1.0, 1.5, 2.0, 9.0});
  EXPECT_EQ(histc(t, 2, 0, 2).to_doubles(), (Doubles{1, 3}));
  EXPECT_EQ(t.histc(3).to_doubles(), (Doubles{4, 0, 1}));
  EXPECT_EQ(bincount(tensor({0, 2, 2}), tensor({1.0, 2.0, 3.0}), 4).to_doubles(), (Doubles{1, 0, 5, 0}));
  expect_starts(text_of<RuntimeError>([&] { histc(t, 2, 3, 1); }), "max must be larger than min");
}

TEST(Search, ValuesBelongBeforeOrBehindEqualOnes) {
  const Tensor sorted = tensor({1.0, 2.0, 2.0, 4.0}), values = tensor({2.0, 5.0, NAN});
  EXPECT_EQ(searchsorted(sorted, values).to_doubles(), (Doubles{1, 4, 4}));
  EXPECT_EQ(searchsorted(sorted, values, true, true).to_doubles(), (Doubles{3, 4, 4}));
  EXPECT_EQ(searchsorted(sorted, 2, true).dtype(), DType::I32);
  EXPECT_EQ(searchsorted(tensor({4.0, 1.0}), 2, false, false, "right", tensor({1, 0})).item<int64_t>(), 1);
  EXPECT_EQ(values.bucketize(sorted).to_doubles(), (Doubles{1, 4, 4}));
  expect_starts(text_of<RuntimeError>([&] { searchsorted(sorted, values, false, true, "left"); }),
                "torch.searchsorted(): side and right can't be set to opposites");
}

TEST(Search, IsinTellsMembers) {
  EXPECT_EQ(isin(tensor({1, 2, 3}), tensor({2, 5})).to_doubles(), (Doubles{0, 1, 0}));
  EXPECT_EQ(isin(2, tensor({2, 5}), true).item<bool>(), false);
  expect_starts(text_of<TypeError>([] { isin(1, 2); }), "isin(): wanted a Tensor");
}

TEST(Search, DistinctSlicesAreSorted) {
  const auto [slices, places, counts] = unique(tensor({2, 1, 0, 0, 2, 1}).reshape({3, 2}), 0);
  EXPECT_EQ(slices.to_doubles(), (Doubles{0, 0, 2, 1}));
  EXPECT_EQ(places.to_doubles(), (Doubles{1, 0, 1}));
  EXPECT_EQ(counts.to_doubles(), (Doubles{1, 2}));
}

TEST(Search, NaNsAreLeftOut) {
  const Tensor t = tensor({1.0, NAN, 3.0});
  EXPECT_EQ(nansum(t).item<double>(), 4);
  EXPECT_EQ(t.nanmean().item<double>(), 2);
  EXPECT_EQ(heaviside(tensor({-1.0, 0.0, 2.0}), tensor({5.0, 5.0, 5.0})).to_doubles(), (Doubles{0, 5, 1}));
  const auto [deviation, mean] = std_mean(tensor({1.0, 3.0}), {}, 0);
  EXPECT_EQ(deviation.item<double>(), 1);
  EXPECT_EQ(mean.item<double>(), 2);
  const auto [least, greatest] = aminmax(tensor({2.0, 1.0}));
  EXPECT_EQ(least.item<double>() * 10 + greatest.item<double>(), 12);
  EXPECT_EQ(norm(tensor({3.0, 4.0}), 2, {}, false, DType::F64).dtype(), DType::F64);
}

}  // namespace
}  // namespace naru
