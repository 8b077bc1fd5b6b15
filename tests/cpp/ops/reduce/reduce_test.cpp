#include <cmath>
#include <limits>

#include "ops/gradients.h"
#include "runtime/device/registry.h"

namespace naru {
namespace {

using test::expect_error;
using test::expect_gradients;
using test::numbers;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;
using In = const std::vector<Tensor>&;

// Sums over the reduced dimensions, by plain loops, in double.
Doubles naive_sum(const Tensor& t, const std::vector<bool>& reduced) {
  const Doubles v = t.to_doubles();
  Dims kept;
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (!reduced[d]) kept.push_back(t.sizes()[d]);
  Doubles out(static_cast<size_t>(product(kept)), 0.0);
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (size_t d = t.sizes().size(); d-- > 0;) {
      const int64_t p = rest % t.sizes()[d];
      rest /= t.sizes()[d];
      if (!reduced[d]) at += p * step, step *= t.sizes()[d];
    }
    out[static_cast<size_t>(at)] += v[static_cast<size_t>(i)];
  }
  return out;
}

void expect_near(const Doubles& got, const Doubles& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "element " << i;
}

TEST(Sum, EveryChoiceOfDimensionsOfEveryLayoutGivesTheSumOfPlainLoops) {
  const Tensor base = numbers({3, 5, 67, 4});
  const Tensor layouts[] = {base,
                            base.permute({3, 1, 0, 2}),
                            base.slice(2, 1, 60, 3),
                            base.slice(0, 1, 2).expand({3, 5, 67, 4}),
                            numbers({1, 300, 1, 70}),
                            numbers({3, 0, 2, 2})};
  for (const Tensor& t : layouts)
    for (int mask = 1; mask < 16; ++mask) {
      std::vector<bool> reduced(4);
      Dims dims;
      for (int d = 0; d < 4; ++d)
        if (mask >> d & 1) reduced[static_cast<size_t>(d)] = true, dims.push_back(d - (d % 2) * 4);
      SCOPED_TRACE(t.str() + " dims " + dims.str());
      expect_near(sum(t, dims).to_doubles(), naive_sum(t, reduced), 1e-12 * 1000);
      Dims kept = t.sizes();
      for (int d = 0; d < 4; ++d)
        if (reduced[static_cast<size_t>(d)]) kept[static_cast<size_t>(d)] = 1;
      EXPECT_EQ(sum(t, dims, true).sizes(), kept);
    }
}

TEST(Sum, IntegersAndBoolGiveInt64AndFloatsTheirOwnType) {
  EXPECT_EQ(sum(full({300}, 200, Options(DType::U8))).item<int64_t>(), 60000);
  EXPECT_EQ(sum(full({300}, 1, Options(DType::U8))).dtype(), DType::I64);
  EXPECT_EQ(sum(ones({3}, Options(DType::Bool))).item<int64_t>(), 3);
  EXPECT_EQ(sum(ones({3}, Options(DType::F16))).dtype(), DType::F16);
  EXPECT_EQ(sum(ones({3}), std::nullopt, false, DType::F64).dtype(), DType::F64);
  EXPECT_EQ(sum(tensor(Doubles{0.5, 0.75, 1.5}), std::nullopt, false, DType::I64).item<int64_t>(), 1);
}

TEST(Sum, OfManyHalfsIsAccumulatedInFloat32) {
  EXPECT_EQ(sum(full({4097}, 1, Options(DType::F16)).to(DType::F16) * 0.5).item<double>(), 2048.0);
}

TEST(Sum, OfATransposedTensorReadsMemoryInOrder) {
  const Tensor x = numbers({70, 300}).to(DType::F32);
  EXPECT_EQ(sum(x.t()).item<double>(), sum(x).item<double>());
}

TEST(Sum, ADimensionOutOfRangeOrNamedTwiceIsAnError) {
  const Tensor x = ones({2, 3});
  expect_error<IndexError>([&] { sum(x, Dims{2}); }, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  expect_error<RuntimeError>([&] { sum(x, Dims{0, -2}); }, "dim 0 appears multiple times in the list of dims");
}

TEST(Mean, OfIntegersIsAnErrorAndOfNothingNaN) {
  expect_error<NotImplementedError>(
      [] { mean(ones({2}, Options(DType::I64))); },
      "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long");
  EXPECT_TRUE(std::isnan(mean(ones({0})).item<double>()));
  EXPECT_EQ(mean(tensor(Doubles{1, 2, 4.5})).item<double>(), 2.5);
}

TEST(Mean, OfHalfsIsRoundedOnce) {
  // The sum, 65504 + 65504, exceeds float16's range.
  EXPECT_EQ(mean(full({2}, 65504.0, Options(DType::F16))).item<double>(), 65504.0);
}

TEST(Prod, GradientsHoldWithNoneOneAndTwoZeros) {
  for (const Doubles& v : {Doubles{1, 2, 3, -1.5, 2, 4}, Doubles{1, 0, 3, -1.5, 2, 4}, Doubles{1, 0, 0, -1.5, 2, 4}}) {
    const Tensor x = tensor(v, Options(DType::F64)).view({2, 3});
    expect_gradients([](In t) { return prod(t[0]); }, {x});
    expect_gradients([](In t) { return prod(t[0], 1); }, {x});
    expect_gradients([](In t) { return prod(t[0], -2, true); }, {x});
  }
  EXPECT_EQ(prod(full({3}, 2, Options(DType::I32))).dtype(), DType::I64);
  EXPECT_EQ(prod(ones({0})).item<double>(), 1);
}

TEST(Extremes, OfNothingAreErrorsWithPyTorchsText) {
  const Tensor x = ones({0, 3});
  expect_error<RuntimeError>([&] { max(x); },
                             "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim");
  expect_error<RuntimeError>([&] { amin(x); },
                             "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim");
  expect_error<IndexError>([&] { max(x, 0); }, "max(): Expected reduction dim 0 to have non-zero size.");
  expect_error<IndexError>([&] { argmax(x); }, "argmax(): Expected reduction dim to be specified for input.numel() == 0.");
  EXPECT_EQ(max(x, 1).first.sizes(), Dims{0});
  EXPECT_EQ(amax(x, Dims{1}).sizes(), Dims{0});
}

TEST(Extremes, NaNWinsAndTheFirstOfEqualsIsChosen) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor(Doubles{1, 5, nan, 5, 2, 5, 0, -1}).view({2, 4});
  EXPECT_TRUE(std::isnan(max(x).item<double>()));
  EXPECT_TRUE(std::isnan(min(x).item<double>()));
  EXPECT_EQ(argmax(x, 1).to_ints(), (Ints{2, 1}));
  EXPECT_EQ(argmin(x, 0).to_ints(), (Ints{0, 0, 0, 1}));
  EXPECT_EQ(argmax(x).item<int64_t>(), 2);
  const auto [values, indices] = max(x, -1, true);
  EXPECT_EQ(values.sizes(), (Dims{2, 1}));
  EXPECT_EQ(indices.to_ints(), (Ints{2, 1}));
  EXPECT_EQ(values.to_doubles()[1], 5);
}

TEST(Extremes, OfIntegersAndBoolKeepTheType) {
  const Tensor x = tensor(Ints{3, -7, 5}).to(DType::I8);
  EXPECT_EQ(max(x).dtype(), DType::I8);
  EXPECT_EQ(min(x).item<int64_t>(), -7);
  const Tensor b = tensor(Ints{0, 1}).to(DType::Bool);
  EXPECT_TRUE(max(b).item<bool>());
  EXPECT_FALSE(min(b).item<bool>());
  EXPECT_EQ(max(b, 0).second.item<int64_t>(), 1);
  const int64_t big = (int64_t{1} << 60) + 1;
  EXPECT_EQ(max(tensor(Ints{big - 1, big})).item<int64_t>(), big);
}

TEST(Extremes, OfTransposedAndSteppedViewsMatchTheirCopies) {
  const Tensor x = numbers({6, 7, 9}).permute({2, 0, 1}).slice(2, 0, 7, 2);
  for (int64_t d = 0; d < 3; ++d) {
    EXPECT_EQ(max(x, d).first.to_doubles(), max(x.contiguous(), d).first.to_doubles());
    EXPECT_EQ(argmin(x, d).to_ints(), argmin(x.contiguous(), d).to_ints());
    EXPECT_EQ(amax(x, Dims{d}).to_doubles(), max(x, d).first.to_doubles());
  }
}

TEST(Extremes, TheGradientOfAmaxIsSharedAmongEqualsThatOfMaxGoesToTheChosen) {
  Tensor x = tensor(Doubles{1, 3, 3, 2}, Options(DType::F64)).requires_grad_();
  amax(x).backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{0, 0.5, 0.5, 0}));
  x.set_grad({});
  max(x, 0).first.backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{0, 1, 0, 0}));
  const Tensor y = numbers({3, 4});
  expect_gradients([](In t) { return max(t[0], 1).first; }, {y});
  expect_gradients([](In t) { return min(t[0], 0, true).first; }, {y});
  expect_gradients([](In t) { return amin(t[0], Dims{0, 1}, true); }, {y});
  expect_gradients([](In t) { return max(t[0]); }, {y});
}

TEST(AnyAll, AreBoolButForUint8) {
  EXPECT_EQ(any(zeros({3})).dtype(), DType::Bool);
  EXPECT_EQ(all(ones({3}, Options(DType::U8))).dtype(), DType::U8);
  EXPECT_FALSE(any(ones({0})).item<bool>());
  EXPECT_TRUE(all(ones({0})).item<bool>());
  const Tensor x = tensor(Doubles{0, 0.25, 0, 0}).view({2, 2});
  EXPECT_EQ(any(x, Dims{1}).to_ints(), (Ints{1, 0}));
  EXPECT_EQ(all(x != 0, Dims{0}).to_ints(), (Ints{0, 0}));
  EXPECT_EQ(count_nonzero(x, Dims{0}).to_ints(), (Ints{0, 1}));
}

TEST(Variance, FollowsItsFormulaForAnyCorrection) {
  const Tensor x = numbers({4, 50}, 1000, 1001);
  for (double correction : {0.0, 1.0, 2.0}) {
    const Tensor d = x - mean(x, Dims{1}, true);
    expect_near(var(x, Dims{1}, correction).to_doubles(), (sum(d * d, Dims{1}) / (50 - correction)).to_doubles(), 1e-13);
  }
  EXPECT_TRUE(std::isnan(var(ones({1})).item<double>()));
  expect_error<NotImplementedError>([] { std(ones({2}, Options(DType::I64))); }, "std and var only support floating point");
  const Tensor y = numbers({3, 4});
  expect_gradients([](In t) { return var(t[0]); }, {y});
  expect_gradients([](In t) { return std(t[0], Dims{1}, 0); }, {y});
  expect_gradients([](In t) { return var_mean(t[0], Dims{0}).first + var_mean(t[0], Dims{0}).second; }, {y});
}

TEST(Norm, OfEveryOrderFollowsItsFormulaAndHasAGradient) {
  const Tensor x = numbers({3, 4});
  EXPECT_NEAR(norm(x).item<double>(), std::sqrt(sum(x * x).item<double>()), 1e-14);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(norm(x, inf).item<double>(), max(abs(x)).item<double>());
  EXPECT_EQ(norm(x, -inf).item<double>(), min(abs(x)).item<double>());
  EXPECT_EQ(norm(x, 0).item<double>(), 12);
  for (double p : {1.0, 1.5, 2.0, 3.0, inf}) {
    SCOPED_TRACE(p);
    expect_gradients([p](In t) { return norm(t[0], p, Dims{1}); }, {x}, p != inf);
  }
  Tensor zero = zeros({3}, Options(DType::F64)).requires_grad_();
  norm(zero).backward();
  EXPECT_EQ(zero.grad().to_doubles(), (Doubles{0, 0, 0}));
}

TEST(Norm, OfOrderThreeIsTheCubeRootOfTheSumOfCubes) {
  EXPECT_NEAR(norm(tensor(Doubles{1, -2, 3}, Options(DType::F64)), 3).item<double>(), std::cbrt(36.0), 1e-14);
}

TEST(Logsumexp, DoesNotOverflowAndTakesInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(logsumexp(tensor(Doubles{1000, 1000}), {0}).item<double>(), 1000 + std::log(2.0), 1e-4);
  EXPECT_EQ(logsumexp(tensor(Doubles{-inf, -inf}), {0}).item<double>(), -inf);
  EXPECT_EQ(logsumexp(tensor(Doubles{1, inf}), {0}).item<double>(), inf);
  EXPECT_EQ(logsumexp(ones({2, 0}), {1}).to_doubles(), (Doubles{-inf, -inf}));
  const Tensor x = numbers({3, 4});
  expect_gradients([](In t) { return logsumexp(t[0], {1}); }, {x});
  expect_gradients([](In t) { return logsumexp(t[0], {0, 1}, true); }, {x});
}

TEST(Scan, RunsAlongAnyDimensionOfAnyLayout) {
  const Tensor x = numbers({4, 5, 6}).transpose(0, 2);
  for (int64_t d = 0; d < 3; ++d) {
    const Tensor y = cumsum(x, d), z = cumprod(x, d);
    for (int64_t i = 0; i < x.size(d); ++i) {
      expect_near(y.select(d, i).to_doubles(), sum(x.narrow(d, 0, i + 1), Dims{d}).to_doubles(), 1e-12);
      expect_near(z.select(d, i).to_doubles(), prod(x.narrow(d, 0, i + 1), d).to_doubles(), 1e-12);
    }
    expect_gradients([d](In t) { return cumsum(t[0], d); }, {x});
    expect_gradients([d](In t) { return cumprod(t[0], d); }, {numbers({2, 3, 2})});
  }
  EXPECT_EQ(cumsum(ones({3}, Options(DType::Bool)), 0).to_ints(), (Ints{1, 2, 3}));
  expect_gradients([](In t) { return cumprod(t[0], 0); }, {tensor(Doubles{2, 0, 3, 0, 1}, Options(DType::F64))});
}

TEST(Equal, ComparesShapesAndElements) {
  EXPECT_TRUE(equal(ones({2}), ones({2}, Options(DType::I64))));
  EXPECT_FALSE(equal(ones({2}), ones({2, 1})));
  EXPECT_TRUE(allclose(ones({2}), full({2}, 1.000001)));
  EXPECT_FALSE(allclose(ones({2}), full({2}, 1.1)));
  const Tensor nan = full({2}, std::nan(""));
  EXPECT_FALSE(allclose(nan, nan));
  EXPECT_TRUE(allclose(nan, nan, 1e-5, 1e-8, true));
  expect_error<RuntimeError>([] { isclose(ones({2}), ones({2}, Options(DType::F64))); }, "Float did not match Double");
}

TEST(ReductionCode, IsTheSameBitForBitOnAVirtualDevice) {
  runtime::set_virtual_devices("cuda:2,mps:1");
  const Tensor x = numbers({7, 130, 33}).to(DType::F32);
  const Tensor there = x.to("cuda:0");
  for (const Dims& dims : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{0, 1, 2}}) {
    EXPECT_EQ(sum(x, dims).to_doubles(), sum(there, dims).to_doubles());
    EXPECT_EQ(var(x, dims).to_doubles(), var(there, dims).to_doubles());
    EXPECT_EQ(logsumexp(x, dims).to_doubles(), logsumexp(there, dims).to_doubles());
  }
  EXPECT_EQ(max(x, 1).second.to_ints(), max(there, 1).second.to_ints());
}

TEST(Gradients, OfSumsAndMeansArriveEverywhere) {
  const Tensor x = numbers({3, 4, 2});
  expect_gradients([](In t) { return sum(t[0]); }, {x});
  expect_gradients([](In t) { return sum(t[0] * t[0], Dims{1}); }, {x});
  expect_gradients([](In t) { return mean(t[0] * t[0], Dims{0, 2}, true); }, {x});
  expect_gradients([](In t) { return mean(t[0] * t[0]); }, {x});
}

}  // namespace
}  // namespace naru
