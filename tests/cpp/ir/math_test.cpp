// The error of every function in ulp: over all float16 values and a large sample of float32 (both computed in F32), and a sample of float64.
#include "ir/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "ir/measure.h"

namespace naru::ir::testing {
namespace {

using Reference = long double (*)(long double);
using Reference2 = long double (*)(long double, long double);

struct UnaryCase {
  const char* name;
  Unary f;
  double (*in_double)(double);  // for F32 results; null: the next
  Reference precise;
  double bound32, bound64;
  double low, high;  // where most of the function happens: sampled densely
};

long double sigmoid_reference(long double x) { return 1 / (1 + std::exp(-x)); }
long double softplus_reference(long double x) { return x > 40 ? x + std::exp(-x) : std::log1p(std::exp(x)); }
long double rsqrt_reference(long double x) { return 1 / std::sqrt(x); }

const UnaryCase kUnary[] = {
    {"exp", exp, std::exp, std::exp, 1, 1, -110, 90},
    {"exp2", exp2, std::exp2, std::exp2, 1, 1, -150, 128},
    {"expm1", expm1, std::expm1, std::expm1, 2, 2, -5, 10},
    {"log", log, std::log, std::log, 1, 1, 0.4, 3},
    {"log2", log2, std::log2, std::log2, 2, 2, 0.4, 3},
    {"log10", log10, std::log10, std::log10, 2, 2, 0.4, 3},
    {"log1p", log1p, std::log1p, std::log1p, 2, 2, -1, 3},
    {"sinh", sinh, std::sinh, std::sinh, 2, 2, -5, 5},
    {"cosh", cosh, std::cosh, std::cosh, 2, 2, -5, 5},
    {"tanh", tanh, std::tanh, std::tanh, 2, 2, -9, 9},
    {"asinh", asinh, std::asinh, std::asinh, 2, 2, -5, 5},
    {"acosh", acosh, std::acosh, std::acosh, 2, 2, 1, 5},
    {"atanh", atanh, std::atanh, std::atanh, 2, 2, -1, 1},
    {"sigmoid", sigmoid, nullptr, sigmoid_reference, 2, 2, -20, 20},
    {"softplus", softplus, nullptr, softplus_reference, 2, 2, -20, 20},
#ifndef PART
    {"sin", sin, std::sin, std::sin, 2, 2, -10, 10},
    {"cos", cos, std::cos, std::cos, 2, 2, -10, 10},
    {"tan", tan, std::tan, std::tan, 2, 2, -10, 10},
    {"asin", asin, std::asin, std::asin, 2, 2, -1, 1},
    {"acos", acos, std::acos, std::acos, 2, 2, -1, 1},
    {"atan", atan, std::atan, std::atan, 2, 2, -5, 5},
    {"rsqrt", rsqrt, nullptr, rsqrt_reference, 2, 2, 0, 4},
#endif
};

Worst worst_of(const UnaryCase& c, VType type, const std::vector<double>& x) {
  const auto got = evaluate(c.f, type, x);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = type == VType::F32 && c.in_double ? static_cast<long double>(c.in_double(x[i])) : c.precise(x[i]);
    worst.take(ulps(got[i], want, type), x[i], 0, got[i], want);
  }
  return worst;
}

void report(const char* name, const char* over, const Worst& w) {
  std::printf("%-12s %-22s max %.3f ulp at %.9g (%a): got %.9g, true %.9Lg\n", name, over, w.ulps, w.x, w.x, w.got, w.want);
}

class EveryFunction : public ::testing::TestWithParam<UnaryCase> {};

TEST_P(EveryFunction, StaysWithinItsErrorBound) {
  const UnaryCase& c = GetParam();
  const Worst half = worst_of(c, VType::F32, all_halves());
  report(c.name, "all float16", half);
  EXPECT_LE(half.ulps, c.bound32);
  Worst single = worst_of(c, VType::F32, stratified(VType::F32, 2000, 1));
  const Worst dense = worst_of(c, VType::F32, uniform(VType::F32, c.low, c.high, 500'000, 2));
  report(c.name, "float32, all exponents", single);
  report(c.name, "float32, dense", dense);
  EXPECT_LE(single.ulps, c.bound32);
  EXPECT_LE(dense.ulps, c.bound32);
  const Worst wide = worst_of(c, VType::F64, stratified(VType::F64, 40, 3));
  const Worst wide_dense = worst_of(c, VType::F64, uniform(VType::F64, c.low, c.high, 150'000, 4));
  report(c.name, "float64, all exponents", wide);
  report(c.name, "float64, dense", wide_dense);
  EXPECT_LE(wide.ulps, c.bound64);
  EXPECT_LE(wide_dense.ulps, c.bound64);
}

INSTANTIATE_TEST_SUITE_P(Math, EveryFunction, ::testing::ValuesIn(kUnary), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace naru::ir::testing
