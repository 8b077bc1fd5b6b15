#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ops/gradients.h"
#include "runtime/device/registry.h"

namespace naru {
namespace {

using test::expect_error;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

// Mean and standard deviation of the elements.
std::pair<double, double> spread(const Tensor& t) {
  const Doubles v = t.to_doubles();
  double sum = 0, squares = 0;
  for (double x : v) sum += x;
  const double mean = sum / static_cast<double>(v.size());
  for (double x : v) squares += (x - mean) * (x - mean);
  return {mean, std::sqrt(squares / static_cast<double>(v.size()))};
}

TEST(Random, UniformNumbersFillTheirRangeEvenlyAndNeverReachItsEnd) {
  manual_seed(1);
  for (DType type : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    SCOPED_TRACE(name_of(type));
    const Tensor t = rand({200000}, Options(type));
    const auto [mean, deviation] = spread(t);
    EXPECT_NEAR(mean, 0.5, 0.004);
    EXPECT_NEAR(deviation, std::sqrt(1.0 / 12), 0.004);
    EXPECT_LT(max(t).item<double>(), 1.0);
    EXPECT_GE(min(t).item<double>(), 0.0);
    Ints counts(16);
    for (double x : t.to_doubles()) ++counts[static_cast<size_t>(x * 16)];
    for (int64_t c : counts) EXPECT_NEAR(static_cast<double>(c), 12500, 600);
  }
  Tensor t = empty({1000});
  t.uniform_(-3, -2);
  EXPECT_LT(max(t).item<double>(), -2);
  EXPECT_GE(min(t).item<double>(), -3);
}

TEST(Random, NormalNumbersHaveTheMomentsOfTheNormalDistribution) {
  manual_seed(2);
  for (DType type : {DType::F16, DType::F32, DType::F64}) {
    const Tensor t = randn({200000}, Options(type));
    const auto [mean, deviation] = spread(t);
    EXPECT_NEAR(mean, 0, 0.01);
    EXPECT_NEAR(deviation, 1, 0.01);
    int64_t beyond_two = 0;
    for (double x : t.to_doubles()) beyond_two += std::abs(x) > 2;
    EXPECT_NEAR(static_cast<double>(beyond_two) / 200000, 0.0455, 0.002);
  }
  const Tensor m = tensor(Doubles{-5, 5}).view({2, 1}), s = tensor(Doubles{1, 2, 0}), y = normal(m, s);
  EXPECT_EQ(y.sizes(), (Dims{2, 3}));
  EXPECT_EQ(y.to_doubles()[2], -5);
  EXPECT_EQ(y.to_doubles()[5], 5);
  EXPECT_NEAR(spread(normal(10.0, full({100000}, 3.0))).second, 3, 0.05);
  EXPECT_NEAR(spread(normal(10.0, 3.0, Dims{100000})).first, 10, 0.05);
}

TEST(Random, IntegersAreEvenlySpreadOverTheirRange) {
  manual_seed(3);
  const Tensor t = randint(-3, 7, {100000});
  EXPECT_EQ(t.dtype(), DType::I64);
  Ints counts(10);
  for (int64_t x : t.to_ints()) ++counts.at(static_cast<size_t>(x + 3));
  for (int64_t c : counts) EXPECT_NEAR(static_cast<double>(c), 10000, 500);
  EXPECT_EQ(randint(0, 3, {4}, Options(DType::F32)).dtype(), DType::F32);
  Tensor b = empty({1000}, Options(DType::U8));
  random_(b, {}, {});
  EXPECT_GT(max(b).item<int64_t>(), 250);
  Tensor flags = empty({1000}, Options(DType::Bool));
  random_(flags, {}, {});
  EXPECT_NEAR(sum(flags).item<double>(), 500, 80);
}

TEST(Random, BernoulliAndExponentialHaveTheirMeans) {
  manual_seed(4);
  const Tensor p = tensor(Doubles{0, 0.2, 1}).view({3, 1}).expand({3, 20000}), y = bernoulli(p);
  const Doubles means = mean(y, Dims{1}).to_doubles();
  EXPECT_EQ(means[0], 0);
  EXPECT_NEAR(means[1], 0.2, 0.01);
  EXPECT_EQ(means[2], 1);
  Tensor t = empty({100000}, Options(DType::I64));
  bernoulli_(t, 0.7);
  EXPECT_NEAR(sum(t).item<double>() / 100000, 0.7, 0.01);
  Tensor e = empty({100000});
  exponential_(e, 4);
  EXPECT_NEAR(spread(e).first, 0.25, 0.005);
  EXPECT_NEAR(spread(e).second, 0.25, 0.01);
  EXPECT_GE(min(e).item<double>(), 0);
}

TEST(Random, TheSameSeedGivesTheSameNumbersAndEveryDrawOthers) {
  manual_seed(5);
  const Doubles a = rand({100}).to_doubles(), b = rand({100}).to_doubles();
  EXPECT_NE(a, b);
  manual_seed(5);
  EXPECT_EQ(rand({100}).to_doubles(), a);
  Generator own(5);
  EXPECT_EQ(rand({100}, {}, &own).to_doubles(), a);
  EXPECT_EQ(rand({100}).to_doubles(), b);
  EXPECT_EQ(default_generator().initial_seed(), 5u);
}

TEST(Random, AnElementDependsOnItsPositionAloneNotOnShapeLayoutOrSize) {
  const auto fresh = [](const Tensor& t) {
    Generator g(6);
    normal_(t, 0, 1, &g);
    return t.to_doubles();
  };
  const Doubles wanted = fresh(empty({5, 300}));
  EXPECT_EQ(fresh(empty({300, 5}).t()), wanted);
  EXPECT_EQ(fresh(empty({5, 600}).slice(1, 0, 600, 2)), wanted);
  EXPECT_EQ(fresh(empty({1500})), wanted);
  const Doubles more = fresh(empty({100000}));
  EXPECT_EQ(Doubles(more.begin(), more.begin() + 1500), wanted);
}

TEST(Random, IsTheSameOnEveryDevice) {
  runtime::set_virtual_devices("cuda:2,mps:1");
  const auto outcome = [](Device d) {
    manual_seed(7);
    std::vector<Doubles> all;
    all.push_back(rand({70, 70}, d).to_doubles());
    all.push_back(randn({3000}, d).to_doubles());
    all.push_back(randint(0, 1000, {100}, d).to_doubles());
    all.push_back(randperm(1000, d).to_doubles());
    all.push_back(bernoulli(full({500}, 0.3, d)).to_doubles());
    all.push_back(dropout(ones({50, 20}, d).t(), 0.4).to_doubles());
    all.push_back(multinomial(rand({4, 30}, d), 10, false).to_doubles());
    all.push_back(multinomial(rand({4, 30}, d), 50, true).to_doubles());
    return all;
  };
  const auto here = outcome(Device(DeviceType::Cpu)), there = outcome(Device("cuda:1"));
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i], there[i]) << "draw " << i;
}

TEST(Random, APermutationHasEveryNumberOnce) {
  manual_seed(8);
  for (int64_t n : {0, 1, 2, 1000}) {
    Ints p = randperm(n).to_ints();
    std::sort(p.begin(), p.end());
    Ints wanted(static_cast<size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0);
    EXPECT_EQ(p, wanted);
  }
  // Each permutation of three elements is equally likely.
  std::map<Ints, int> counts;
  for (int i = 0; i < 6000; ++i) ++counts[randperm(3).to_ints()];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_EQ(randperm(3, Options(DType::F32)).dtype(), DType::F32);
  expect_error<RuntimeError>([] { randperm(-1); }, "Trying to create tensor with negative dimension -1");
  expect_error<RuntimeError>([] { randperm(300, Options(DType::U8)); }, "value cannot be converted to type uint8_t without overflow");
}

TEST(Multinomial, SamplesByWeightWithAndWithoutReplacement) {
  manual_seed(9);
  const Tensor w = tensor(Doubles{1, 0, 3, 4}), many = w.expand({20000, 4});
  for (bool replacement : {true, false}) {
    Ints counts(4);
    for (int64_t x : multinomial(many, 1, replacement).to_ints()) ++counts.at(static_cast<size_t>(x));
    EXPECT_EQ(counts[1], 0);
    EXPECT_NEAR(static_cast<double>(counts[0]) / 20000, 0.125, 0.01);
    EXPECT_NEAR(static_cast<double>(counts[2]) / 20000, 0.375, 0.015);
  }
  const Tensor three = multinomial(many, 3);
  const Ints all = three.to_ints();
  for (size_t i = 0; i < all.size(); i += 3) {
    const std::set<int64_t> row(all.begin() + static_cast<int64_t>(i), all.begin() + static_cast<int64_t>(i) + 3);
    ASSERT_EQ(row, (std::set<int64_t>{0, 2, 3}));
  }
  EXPECT_EQ(multinomial(w, 10, true).sizes(), Dims{10});
  EXPECT_EQ(multinomial(many, 2).sizes(), (Dims{20000, 2}));
}

TEST(Multinomial, BadArgumentsAreErrorsWithPyTorchsText) {
  const Tensor f = ones({2, 3});
  expect_error<RuntimeError>([&] { multinomial(f, 5); }, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  expect_error<RuntimeError>([&] { multinomial(-f, 1); }, "probability tensor contains either `inf`, `nan` or element < 0");
  expect_error<RuntimeError>([&] { multinomial(f * std::nan(""), 1); }, "probability tensor contains either `inf`, `nan` or element < 0");
  expect_error<RuntimeError>([&] { multinomial(f * 0, 1, true); }, "invalid multinomial distribution (sum of probabilities <= 0)");
  expect_error<RuntimeError>([&] { multinomial(f, 0); }, "cannot sample n_sample <= 0 samples");
  expect_error<RuntimeError>([&] { multinomial(f.to(DType::I64), 1); },
                             "multinomial only supports floating-point dtypes for input, got: Long");
  expect_error<RuntimeError>([] { multinomial(ones({2, 2, 2}), 1); }, "prob_dist must be 1 or 2 dim");
}

TEST(Random, BadArgumentsAreErrorsWithPyTorchsText) {
  const Tensor f = ones({2}), i = ones({2}, Options(DType::I64)), u = ones({2}, Options(DType::U8));
  expect_error<NotImplementedError>([] { rand({2}, Options(DType::I64)); }, "\"check_uniform_bounds\" not implemented for 'Long'");
  expect_error<NotImplementedError>([] { randn({2}, Options(DType::I64)); }, "\"normal_kernel_cpu\" not implemented for 'Long'");
  expect_error<RuntimeError>([] { randint(5, 5, {2}); }, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5");
  expect_error<RuntimeError>([] { randint(0, 300, {2}, Options(DType::U8)); }, "to - 1 is out of bounds for unsigned char");
  expect_error<RuntimeError>([&] { bernoulli(f * 2); }, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  expect_error<RuntimeError>([&] { bernoulli_(f, 1.5); }, "bernoulli_ expects p to be in [0, 1], but got p=1.5");
  expect_error<RuntimeError>([&] { normal_(f, 0, -1); }, "normal expects std >= 0.0, but found std -1");
  expect_error<RuntimeError>([&] { normal(f, -f); }, "normal expects all elements of std >= 0.0");
  expect_error<RuntimeError>([&] { uniform_(f, 2, 1); }, "uniform_ expects to return a [from, to) range, but found from=2 > to=1");
  expect_error<RuntimeError>([&] { uniform_(f, 0, 1e50); }, "to is out of bounds for float");
  expect_error<RuntimeError>([&] { exponential_(f, 0); }, "exponential_ expects lambda > 0.0, but found lambda=0");
  expect_error<RuntimeError>([&] { exponential_(i, 1); }, "Exponential distribution is a continuous probability distribution.");
}

TEST(Random, InPlaceOnALeafThatRequiresGradIsAnError) {
  const Tensor x = rand({3}, Options().with_grad());
  EXPECT_TRUE(x.requires_grad());
  EXPECT_THROW(uniform_(x, 0, 1), RuntimeError);
  NoGrad guard;
  const uint32_t before = x.version();
  uniform_(x, 0, 1);
  EXPECT_GT(x.version(), before);
}

}  // namespace
}  // namespace naru
