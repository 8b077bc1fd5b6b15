// Functions without approximation: floor division, remainders, minima and maxima, integer powers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/interpreter/interpret.h"
#include "ir/math/math.h"
#include "naru/element_type.h"

namespace naru::ir {
namespace {

template <class T>
std::vector<T> apply(V (*f)(V, V), std::vector<T> a, std::vector<T> b) {
  MapKernel kernel;
  kernel.inputs = {{dtype_of<T>()}, {dtype_of<T>()}};
  kernel.outputs = {dtype_of<T>()};
  kernel.results = {f(input(kernel.graph, 0, dtype_of<T>()), input(kernel.graph, 1, dtype_of<T>())).id()};
  std::vector<T> out(a.size());
  void* operands[] = {a.data(), b.data(), out.data()};
  interpret(kernel, operands, nullptr, static_cast<int64_t>(a.size()), 0);
  return out;
}

// Equality that distinguishes the sign of zero and treats NaN as equal to NaN.
template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i;
    else
      EXPECT_TRUE(got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i])) << i << ": " << got[i] << " for " << want[i];
  }
}

constexpr float kInf = std::numeric_limits<float>::infinity();

// The expected values are PyTorch's.
TEST(FloorDivide, OfFloatsIsPythons) {
  expect_same<float>(apply<float>(floor_divide, {5.5f, -5.5f, 5.5f, -5.5f, 0.0f, -0.0f, 1.0f, 1e30f, kInf, 3.0f},
                                  {2, 2, -2, -2, 3, 3, 0, 1e-30f, 2, kInf}),
                     {2, -3, -3, 2, 0.0f, -0.0f, kInf, kInf, NAN, 0});
  expect_same<double>(apply<double>(floor_divide, {1.0, 7.0, -7.0}, {0.1, 7.0, 7.0}), {9, 1, -1});
}

TEST(Remainder, OfFloatsHasTheSignOfTheDivisor) {
  expect_same<float>(
      apply<float>(remainder, {5.5f, -5.5f, 5.5f, -5.5f, 0.0f, -0.0f, 1.0f, kInf, 3.0f, -1.0f}, {2, 2, -2, -2, 3, 3, 0, 2, kInf, kInf}),
      {1.5f, 0.5f, -0.5f, -1.5f, 0.0f, -0.0f, NAN, NAN, 3, kInf});
}

TEST(IntegerDivision, RoundsDownAndItsRemainderHasTheSignOfTheDivisor) {
  std::vector<int64_t> a, b;
  for (int64_t x = -20; x <= 20; ++x)
    for (int64_t y = -7; y <= 7; ++y) a.push_back(x), b.push_back(y);
  const auto quotient = apply<int64_t>(floor_divide, a, b), rest = apply<int64_t>(remainder, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (b[i] == 0) {
      EXPECT_EQ(quotient[i], 0);
      continue;
    }
    EXPECT_EQ(quotient[i], static_cast<int64_t>(std::floor(static_cast<double>(a[i]) / static_cast<double>(b[i]))));
    EXPECT_EQ(quotient[i] * b[i] + rest[i], a[i]);
  }
}

TEST(MaximumAndMinimum, GiveNaNWhereEitherIs) {
  expect_same<float>(apply<float>(maximum, {1, NAN, 1, NAN, -kInf}, {2, 1, NAN, NAN, -3}), {2, NAN, NAN, NAN, -3});
  expect_same<float>(apply<float>(minimum, {1, NAN, 1, NAN, -kInf}, {2, 1, NAN, NAN, -3}), {1, NAN, NAN, NAN, -kInf});
  EXPECT_EQ(apply<int32_t>(maximum, {1, -5}, {2, -7}), (std::vector<int32_t>{2, -5}));
}

TEST(Sign, OfNaNIsZero) {
  const auto f = +[](V x, V) { return sign(x); };
  expect_same<float>(apply<float>(f, {NAN, 0.0f, 2.5f, -kInf}, {0, 0, 0, 0}), {0, 0, 1, -1});
  EXPECT_EQ(apply<int64_t>(f, {-9, 0, 4}, {0, 0, 0}), (std::vector<int64_t>{-1, 0, 1}));
}

template <class T>
T power(T x, T n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : 0;
  using U = std::make_unsigned_t<T>;
  U result = 1, base = static_cast<U>(x);
  for (; n; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<T>(result);
}

TEST(IntegerPower, WrapsAndKnowsNegativeExponents) {
  std::vector<int64_t> a, b;
  std::vector<int32_t> c, d;
  for (int64_t x : {0ll, 1ll, -1ll, 2ll, -2ll, 3ll, 10ll, -12345ll, 4611686018427387905ll})
    for (int64_t n : {0ll, 1ll, 2ll, 3ll, 5ll, 31ll, 62ll, 63ll, 64ll, 100ll, 123456789012ll, 9223372036854775807ll, -1ll, -2ll, -9ll}) {
      a.push_back(x), b.push_back(n);
      c.push_back(static_cast<int32_t>(x)), d.push_back(static_cast<int32_t>(n));
    }
  const auto wide = apply<int64_t>(pow_int, a, b);
  const auto narrow = apply<int32_t>(pow_int, c, d);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(wide[i], power(a[i], b[i])) << a[i] << " ** " << b[i];
    EXPECT_EQ(narrow[i], power(c[i], d[i])) << c[i] << " ** " << d[i];
  }
}

}  // namespace
}  // namespace naru::ir
