// The error of every function in ulp: over all float16 values and a large sample of float32 (both computed in F32), and
// a sample of float64.
#include "ir/math/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>

#include "ir/measure.h"

namespace naru::ir::testing {
namespace {

using Reference = long double (*)(long double);
using Reference2 = long double (*)(long double, long double);

struct UnaryCase {
  const char* name;
  Unary f;
  double (*in_double)(double);  // reference for F32 results; null: use `precise`
  Reference precise;
  double bound32, bound64;
  double low, high;  // the interval to sample densely, where most of the function's variation is
  // Near those zeros whose exact position the argument cannot represent, the error is measured in ulps of 1. F64 only.
  enum class Zeros { None, Negative, Any } zeros = Zeros::None;
};

long double sigmoid_reference(long double x) { return 1 / (1 + std::exp(-x)); }
long double softplus_reference(long double x) { return x > 40 ? x + std::exp(-x) : std::log1p(std::exp(x)); }
// Inverts erf by Newton's method on the complement, which keeps its precision in the tail.
long double erfinv_reference(long double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(HUGE_VALL, x) : std::nanl("");
  if (x == 0) return x;
  const long double a = std::fabs(x), slope = 1.12837916709551257389615890312154517168810L;
  long double y = a < 0.5L ? a / slope : std::sqrt(-std::log(1 - a)) * 0.9L;
  for (int i = 0; i < 60; ++i) {
    const long double over = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const long double step = over / (slope * std::exp(-y * y));
    y -= step;
    if (std::fabs(step) <= 1e-19L * y) break;
  }
  return std::copysign(y, x);
}
long double lgamma_reference(long double x) { return std::lgamma(x); }
// The asymptotic series from 20 on, the recurrence below, and reflection for negative x.
long double digamma_reference(long double x) {
  const long double pi = 3.14159265358979323846264338327950288L;
  if (x == 0) return std::copysign(HUGE_VALL, -x);
  if (std::isinf(x)) return x > 0 ? x : std::nanl("");
  if (x < 0) {
    const long double r = x - std::nearbyint(x);
    return r == 0 ? std::nanl("") : digamma_reference(1 - x) - pi / std::tan(pi * r);
  }
  long double sum = 0;
  for (; x < 20; x += 1) sum += 1 / x;
  const long double z = 1 / (x * x);
  const long double series =
      z * (1.0L / 12 - z * (1.0L / 120 - z * (1.0L / 252 - z * (1.0L / 240 - z * (1.0L / 132 - z * (691.0L / 32760 - z / 12))))));
  return std::log(x) - 0.5L / x - series - sum;
}
long double rsqrt_reference(long double x) { return 1 / std::sqrt(x); }

const UnaryCase kUnary[] = {
    {"exp", exp, std::exp, std::exp, 0.9, 0.9, -110, 90},
    {"exp2", exp2, std::exp2, std::exp2, 0.9, 0.9, -150, 128},
    {"expm1", expm1, std::expm1, std::expm1, 1.3, 1.8, -5, 10},
    {"log", log, std::log, std::log, 0.9, 0.9, 0.4, 3},
    {"log2", log2, std::log2, std::log2, 1.1, 1.0, 0.4, 3},
    {"log10", log10, std::log10, std::log10, 1.0, 1.1, 0.4, 3},
    {"log1p", log1p, std::log1p, std::log1p, 1.0, 0.9, -1, 3},
    {"sinh", sinh, std::sinh, std::sinh, 1.6, 1.6, -5, 5},
    {"cosh", cosh, std::cosh, std::cosh, 1.4, 1.3, -5, 5},
    {"tanh", tanh, std::tanh, std::tanh, 1.5, 1.5, -9, 9},
    {"asinh", asinh, std::asinh, std::asinh, 1.7, 1.7, -5, 5},
    {"acosh", acosh, std::acosh, std::acosh, 2.0, 1.9, 1, 5},
    {"atanh", atanh, std::atanh, std::atanh, 1.8, 1.6, -1, 1},
    {"sigmoid", sigmoid, nullptr, sigmoid_reference, 1.8, 1.8, -20, 20},
    {"softplus", softplus, nullptr, softplus_reference, 1.5, 1.5, -20, 20},
    {"sin", sin, std::sin, std::sin, 0.9, 0.8, -10, 10},
    {"cos", cos, std::cos, std::cos, 0.9, 0.8, -10, 10},
    {"tan", tan, std::tan, std::tan, 0.6, 2.3, -10, 10},
    {"asin", asin, std::asin, std::asin, 1.4, 1.5, -1, 1},
    {"acos", acos, std::acos, std::acos, 1.1, 1.1, -1, 1},
    {"atan", atan, std::atan, std::atan, 1.3, 1.6, -5, 5},
    {"rsqrt", rsqrt, nullptr, rsqrt_reference, 1.5, 1.5, 0, 4},
    {"erf", erf, std::erf, std::erf, 1.2, 1.1, -4, 4},
    {"erfc", erfc, std::erfc, std::erfc, 0.6, 3.8, -4, 10},
    {"erfinv", erfinv, nullptr, erfinv_reference, 2.5, 3.5, -1, 1},
    {"lgamma", lgamma, nullptr, lgamma_reference, 0.6, 7, 0, 12, UnaryCase::Zeros::Negative},
    {"digamma", digamma, nullptr, digamma_reference, 0.6, 32, 0, 12, UnaryCase::Zeros::Any},
};

Worst worst_of(const UnaryCase& c, VType type, const std::vector<double>& x) {
  const auto got = evaluate(c.f, type, x);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = type == VType::F32 && c.in_double ? static_cast<long double>(c.in_double(x[i])) : c.precise(x[i]);
    double error = ulps(got[i], want, type);
    const bool near_zero = c.zeros == UnaryCase::Zeros::Any || (c.zeros == UnaryCase::Zeros::Negative && x[i] < 0);
    if (type == VType::F64 && near_zero && std::fabs(want) < 1) error = static_cast<double>(std::fabs(got[i] - want) * 0x1p53L);
    worst.take(error, x[i], 0, got[i], want);
  }
  return worst;
}

void report(const char* name, const char* over, const Worst& w) {
  std::printf("%-12s %-22s max %.3f ulp at %.9g (%a): got %.9g, true %.9Lg\n", name, over, w.ulps, w.x, w.x, w.got, w.want);
}

void PrintTo(const UnaryCase& c, std::ostream* out) { *out << c.name; }

class EveryFunction : public ::testing::TestWithParam<UnaryCase> {};

TEST_P(EveryFunction, StaysWithinItsErrorBound) {
  const UnaryCase& c = GetParam();
  const Worst half = worst_of(c, VType::F32, all_halves());
  report(c.name, "all float16", half);
  EXPECT_LE(half.ulps, c.bound32);
  Worst single = worst_of(c, VType::F32, stratified(VType::F32, 8000, 1));
  const Worst dense = worst_of(c, VType::F32, uniform(VType::F32, c.low, c.high, 2'000'000, 2));
  report(c.name, "float32, all exponents", single);
  report(c.name, "float32, dense", dense);
  EXPECT_LE(single.ulps, c.bound32);
  EXPECT_LE(dense.ulps, c.bound32);
  const Worst wide = worst_of(c, VType::F64, stratified(VType::F64, 150, 3));
  const Worst wide_dense = worst_of(c, VType::F64, uniform(VType::F64, c.low, c.high, 300'000, 4));
  report(c.name, "float64, all exponents", wide);
  report(c.name, "float64, dense", wide_dense);
  EXPECT_LE(wide.ulps, c.bound64);
  EXPECT_LE(wide_dense.ulps, c.bound64);
}

TEST(NormalCdf, IsWithinAnAbsoluteErrorAndExactFarOut) {
  for (const auto& [type, bound] : {std::pair{VType::F32, 8e-8}, {VType::F64, 3e-16}}) {
    auto x = uniform(type, -7, 7, 1'000'000, 6);
    x.insert(x.end(), {0, -0.0, 1e-30, 5.6, -5.6});
    const auto got = evaluate(normal_cdf, type, x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, std::fabs(static_cast<double>(got[i] - 0.5L * std::erfc(-x[i] * std::sqrt(0.5L)))));
    EXPECT_LE(worst, bound);
    const double inf = HUGE_VAL;
    const auto far = evaluate(normal_cdf, type, std::vector<double>{-inf, -1e30, -9, 0, 9, 1e30, inf, NAN});
    EXPECT_EQ((std::vector<double>(far.begin(), far.end() - 1)), (std::vector<double>{0, 0, 0, 0.5, 1, 1, 1}));
    EXPECT_TRUE(std::isnan(far.back()));
  }
}

TEST(Lgamma, KeepsItsPrecisionAroundItsPositiveZeros) {
  for (const auto& [low, high] : {std::pair{0.9, 1.1}, {1.9, 2.1}, {0.0, 10.0}}) {
    const auto x = uniform(VType::F64, low, high, 300'000, 5);
    const auto got = evaluate(lgamma, VType::F64, x);
    Worst worst;
    for (size_t i = 0; i < x.size(); ++i) worst.take(ulps(got[i], lgamma_reference(x[i]), VType::F64), x[i], 0, got[i], 0);
    EXPECT_LE(worst.ulps, 3.0) << "at " << worst.x;
  }
}

struct BinaryCase {
  const char* name;
  Binary f;
  double (*in_double)(double, double);
  long double (*precise)(long double, long double);
  double bound32, bound64;
};
const BinaryCase kBinary[] = {
    {"pow", pow, std::pow, std::pow, 0.6, 1.0},
    {"atan2", atan2, std::atan2, std::atan2, 1.5, 1.7},
};

Worst worst_of(const BinaryCase& c, VType type, const std::vector<double>& x, const std::vector<double>& y) {
  const auto got = evaluate(c.f, type, x, y);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = type == VType::F32 ? static_cast<long double>(c.in_double(x[i], y[i])) : c.precise(x[i], y[i]);
    worst.take(ulps(got[i], want, type), x[i], y[i], got[i], want);
  }
  return worst;
}

void report2(const char* name, const char* over, const Worst& w) {
  std::printf("%-12s %-22s max %.3f ulp at %.9g, %.9g: got %.9g, true %.9Lg\n", name, over, w.ulps, w.x, w.y, w.got, w.want);
}

// All pairs of the first `n` values, which are the special ones.
void add_pairs(std::vector<double>& x, std::vector<double>& y, const std::vector<double>& values, size_t n) {
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) x.push_back(values[i]), y.push_back(values[j]);
}

void PrintTo(const BinaryCase& c, std::ostream* out) { *out << c.name; }

class EveryFunctionOfTwo : public ::testing::TestWithParam<BinaryCase> {};

TEST_P(EveryFunctionOfTwo, StaysWithinItsErrorBound) {
  const BinaryCase& c = GetParam();
  for (const VType type : {VType::F32, VType::F64}) {
    const double bound = type == VType::F32 ? c.bound32 : c.bound64;
    auto x = stratified(type, type == VType::F32 ? 1000 : 60, 1), y = stratified(type, type == VType::F32 ? 1000 : 60, 2);
    const auto values = x;
    std::rotate(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(y.size() / 3), y.end());  // different exponents
    add_pairs(x, y, values, 60);
    const Worst all = worst_of(c, type, x, y);
    report2(c.name, type == VType::F32 ? "float32, all exponents" : "float64, all exponents", all);
    EXPECT_LE(all.ulps, bound);
    const int n = type == VType::F32 ? 500'000 : 150'000;
    Worst dense;
    for (const auto& [low, high, reach] : {std::array{0.0, 4.0, 30.0}, {0.9, 1.1, 800.0}, {-20.0, 20.0, 8.0}}) {
      auto exponents = uniform(type, -reach, reach, n, 4);
      if (low < 0)
        for (double& e : exponents) e = std::round(e);
      const Worst w = worst_of(c, type, uniform(type, low, high, n, 3), exponents);
      dense.take(w.ulps, w.x, w.y, w.got, w.want);
    }
    report2(c.name, type == VType::F32 ? "float32, dense" : "float64, dense", dense);
    EXPECT_LE(dense.ulps, bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Math, EveryFunctionOfTwo, ::testing::ValuesIn(kBinary),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Math, EveryFunction, ::testing::ValuesIn(kUnary), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace naru::ir::testing
