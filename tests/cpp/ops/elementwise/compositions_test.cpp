// Elementwise compositions, from C++: values, dtypes, gradients, errors.
#include "naru/ops/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_starts;
using testing::text_of;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Compositions, MedianIsTheLowerOneAndNaNWhereAnElementIs) {
  const Tensor t = tensor({3.0, 1.0, 2.0, 4.0}).reshape({2, 2});
  EXPECT_EQ(median(t).item<double>(), 2);
  const auto [values, places] = median(t, 1);
  EXPECT_EQ(values.to_doubles(), (Doubles{1, 2}));
  EXPECT_EQ(places.to_doubles(), (Doubles{1, 0}));
  EXPECT_EQ(median(t, 0, true).first.sizes(), (Dims{1, 2}));
  EXPECT_TRUE(std::isnan(median(tensor({1.0, NAN})).item<double>()));
  EXPECT_TRUE(std::isnan(median(zeros({0})).item<double>()));
  EXPECT_EQ(median(tensor({5, 7, 6})).item<int64_t>(), 6);
  expect_starts(text_of<IndexError>([] { median(zeros({2, 0}), 1); }), "median(): Expected reduction dim 1 to have non-zero size.");
}

TEST(Compositions, MedianPassesItsGradientToTheElementThatItIs) {
  Tensor t = tensor({3.0, 1.0, 2.0});
  t.requires_grad_(true);
  median(t).backward();
  EXPECT_EQ(t.grad().to_doubles(), (Doubles{0, 0, 1}));
}

TEST(Compositions, NanToNumTakesTheGreatestNumbersOfTheTypeUnlessOthersAreGiven) {
  const Tensor t = tensor({NAN, kInf, -kInf, 1.5});
  EXPECT_EQ(nan_to_num(t.to(DType::F64), 7, 8, -9).to_doubles(), (Doubles{7, 8, -9, 1.5}));
  EXPECT_EQ(nan_to_num(t.to(DType::F16)).to_doubles(), (Doubles{0, 65504, -65504, 1.5}));
  for (const DType type : {DType::F32, DType::F64, DType::BF16})
    for (const double x : nan_to_num(t.to(type)).to_doubles()) EXPECT_TRUE(std::isfinite(x));
  EXPECT_EQ(nan_to_num(tensor({1, 2})).to_doubles(), (Doubles{1, 2}));
}

TEST(Compositions, ElementwiseOnesKeepTheirTypes) {
  EXPECT_EQ(round(tensor({1.25, -1.35}, Options(DType::F64)), 1).to_doubles(), (Doubles{1.2, -1.4}));
  EXPECT_EQ(round(tensor({1250.0}), -2).item<double>(), 1200);
  EXPECT_EQ(float_power(tensor({2, 3}), Scalar(3)).dtype(), DType::F64);
  EXPECT_EQ(float_power(tensor({2, 3}), Scalar(3)).to_doubles(), (Doubles{8, 27}));
  EXPECT_NEAR(rad2deg(tensor({3.14159265358979}, Options(DType::F64))).item<double>(), 180, 1e-12);
  EXPECT_EQ(deg2rad(tensor({180.0})).dtype(), DType::F32);
}

TEST(Compositions, LogitIsTheInverseOfSigmoidWithinItsLimits) {
  const Tensor t = tensor({0.0, 0.25, 1.0}, Options(DType::F64));
  EXPECT_NEAR(sigmoid(logit(t))[1].item<double>(), 0.25, 1e-15);
  EXPECT_EQ(logit(t)[0].item<double>(), -kInf);
  const Doubles limited = logit(t, 0.25).to_doubles();
  EXPECT_EQ(limited[0], limited[1]);
  EXPECT_DOUBLE_EQ(limited[1], std::log(0.25 / 0.75));
  EXPECT_DOUBLE_EQ(limited[2], std::log(0.75 / 0.25));
}

TEST(Compositions, ScaledProductsAreAdded) {
  const Tensor a = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2});
  EXPECT_EQ(addmv(ones({2}), a, ones({2}), 10, 2).to_doubles(), (Doubles{16, 24}));
  EXPECT_EQ(baddbmm(ones({1, 2, 2}), a.unsqueeze(0), a.unsqueeze(0)).to_doubles(), (Doubles{8, 11, 16, 23}));
}

TEST(Compositions, VectorsOfRows) {
  const Tensor a = tensor({0.0, 0.0, 3.0, 4.0}).reshape({2, 2});
  EXPECT_EQ(cdist(a, a).to_doubles(), (Doubles{0, 5, 5, 0}));
  EXPECT_EQ(cdist(a, a, 1).to_doubles(), (Doubles{0, 7, 7, 0}));
  EXPECT_EQ(cross(tensor({1.0, 0.0, 0.0}), tensor({0.0, 1.0, 0.0})).to_doubles(), (Doubles{0, 0, 1}));
  EXPECT_EQ(inner(a, a).to_doubles(), (Doubles{0, 0, 0, 25}));
  EXPECT_EQ(inner(tensor(2.0), tensor({1.0, 2.0})).to_doubles(), (Doubles{2, 4}));
  expect_starts(text_of<RuntimeError>([&] { cdist(a, zeros({2, 3})); }), "X1 and X2 must have the same number of columns. X1: 2 X2: 3");
  expect_starts(text_of<RuntimeError>([&] { cross(a, a); }), "no dimension of size 3 in input of shape");
}

}  // namespace
}  // namespace naru
