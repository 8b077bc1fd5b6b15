// The interpreter: the meaning of each primitive, against plain C++.
#include "ir/interpreter/interpret.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "naru/element_type.h"

namespace naru::ir {
namespace {

template <class Out, class... In>
std::vector<Out> run(const std::function<V(std::vector<V>)>& f, const std::vector<In>&... in) {
  MapKernel kernel;
  std::vector<V> args;
  std::vector<void*> operands;
  int64_t n = 0;
  (
      [&] {
        args.push_back(input(kernel.graph, args.size(), dtype_of<In>()));
        kernel.inputs.push_back({dtype_of<In>()});
        operands.push_back(const_cast<In*>(in.data()));
        n = static_cast<int64_t>(in.size());
      }(),
      ...);
  kernel.results = {f(args).id()};
  kernel.outputs = {dtype_of<Out>()};
  const auto out = std::make_unique<Out[]>(static_cast<size_t>(n));
  operands.push_back(out.get());
  interpret(kernel, operands.data(), nullptr, n, 0);
  return std::vector<Out>(out.get(), out.get() + n);
}

// Compares bits; all NaNs are equal.
template <class T>
auto bits_of(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    return std::isnan(x) ? std::bit_cast<U>(std::numeric_limits<T>::quiet_NaN()) : std::bit_cast<U>(x);
  } else {
    return static_cast<int64_t>(x);
  }
}

template <class T>
std::vector<T> interesting() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<T> out = {0, L::denorm_min(), L::min(), T(0.1), T(0.5),  1,        T(1.5),       2, T(2.5),
                          3, T(7.75),         T(1e9),   T(3e9), T(1e19), L::max(), L::infinity()};
    for (size_t i = out.size(); i-- > 0;) out.push_back(-out[i]);
    out.push_back(L::quiet_NaN());
    return out;
  } else {
    return {0, 1, 2, 3, 7, 100, L::max() - 1, L::max(), -1, -2, -3, -7, -100, L::min() + 1, L::min()};
  }
}

// Every pair of interesting values.
template <class T>
void pairs(std::vector<T>& a, std::vector<T>& b) {
  for (const T x : interesting<T>())
    for (const T y : interesting<T>()) a.push_back(x), b.push_back(y);
}

template <class Out, class T>
void expect_unary(const char* name, const std::function<V(V)>& f, const std::function<Out(T)>& want, std::vector<T> in = interesting<T>()) {
  const auto got = run<Out>([&](std::vector<V> v) { return f(v[0]); }, in);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(bits_of(got[i]), bits_of(want(in[i]))) << name << " of " << +in[i];
}

template <class Out, class T>
void expect_binary(const char* name, const std::function<V(V, V)>& f, const std::function<Out(T, T)>& want) {
  std::vector<T> a, b;
  pairs(a, b);
  const auto got = run<Out>([&](std::vector<V> v) { return f(v[0], v[1]); }, a, b);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(bits_of(got[i]), bits_of(want(a[i], b[i]))) << name << " of " << +a[i] << ", " << +b[i];
}

template <class T>
class Floats : public ::testing::Test {};
using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, ArithmeticIsThatOfIeee) {
  using T = TypeParam;
  expect_binary<T, T>(
      "add", [](V a, V b) { return a + b; }, [](T a, T b) { return a + b; });
  expect_binary<T, T>(
      "sub", [](V a, V b) { return a - b; }, [](T a, T b) { return a - b; });
  expect_binary<T, T>(
      "mul", [](V a, V b) { return a * b; }, [](T a, T b) { return a * b; });
  expect_binary<T, T>(
      "div", [](V a, V b) { return a / b; }, [](T a, T b) { return a / b; });
  expect_binary<T, T>(
      "rem", [](V a, V b) { return rem(a, b); }, [](T a, T b) { return std::fmod(a, b); });
  expect_binary<T, T>(
      "fma", [](V a, V b) { return fma(a, b, a); }, [](T a, T b) { return std::fma(a, b, a); });
  expect_unary<T, T>(
      "neg", [](V a) { return -a; }, [](T a) { return -a; });
  expect_unary<T, T>(
      "abs", [](V a) { return abs(a); }, [](T a) { return std::fabs(a); });
  expect_unary<T, T>(
      "sqrt", [](V a) { return sqrt(a); }, [](T a) { return std::sqrt(a); });
}

TYPED_TEST(Floats, MinAndMaxGiveTheSecondUnlessTheFirstIsBeyondIt) {
  using T = TypeParam;
  expect_binary<T, T>(
      "min", [](V a, V b) { return prim_min(a, b); }, [](T a, T b) { return a < b ? a : b; });
  expect_binary<T, T>(
      "max", [](V a, V b) { return prim_max(a, b); }, [](T a, T b) { return a > b ? a : b; });
}

TYPED_TEST(Floats, RoundingsKeepTheSignOfZeroAndTiesGoToEven) {
  using T = TypeParam;
  expect_unary<T, T>(
      "floor", [](V a) { return floor(a); }, [](T a) { return std::floor(a); });
  expect_unary<T, T>(
      "ceil", [](V a) { return ceil(a); }, [](T a) { return std::ceil(a); });
  expect_unary<T, T>(
      "trunc", [](V a) { return trunc(a); }, [](T a) { return std::trunc(a); });
  expect_unary<T, T>(
      "round", [](V a) { return round(a); }, [](T a) { return std::nearbyint(a); });
}

TYPED_TEST(Floats, ComparisonsAreFalseWithNaNButNotEqualIsTrue) {
  using T = TypeParam;
  expect_binary<bool, T>(
      "lt", [](V a, V b) { return a < b; }, [](T a, T b) { return a < b; });
  expect_binary<bool, T>(
      "le", [](V a, V b) { return a <= b; }, [](T a, T b) { return a <= b; });
  expect_binary<bool, T>(
      "gt", [](V a, V b) { return a > b; }, [](T a, T b) { return a > b; });
  expect_binary<bool, T>(
      "eq", [](V a, V b) { return a == b; }, [](T a, T b) { return a == b; });
  expect_binary<bool, T>(
      "ne", [](V a, V b) { return a != b; }, [](T a, T b) { return a != b; });
}

TYPED_TEST(Floats, ScalingByAPowerOfTwoRoundsOnce) {
  using T = TypeParam;
  std::vector<T> a, b;
  for (const T x : {T(0), T(-0.0), T(1), T(-1.2345678901234567), T(0x1p60), T(0x1.fffffep-60), std::numeric_limits<T>::infinity(), T(NAN)})
    for (int e = -2100; e <= 2100; e += e > -200 && e < 200 ? 1 : 7) a.push_back(x), b.push_back(static_cast<T>(e));
  const auto got = run<T>([](std::vector<V> v) { return scale(v[0], v[1]); }, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(bits_of(got[i]), bits_of(std::scalbn(a[i], static_cast<int>(b[i])))) << a[i] << " 2^" << b[i];
}

TYPED_TEST(Floats, BitcastKeepsTheBits) {
  using T = TypeParam;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr VType kInt = sizeof(T) == 4 ? VType::I32 : VType::I64, kFloat = sizeof(T) == 4 ? VType::F32 : VType::F64;
  expect_unary<I, T>(
      "to int", [](V a) { return bitcast(a, kInt); }, [](T a) { return std::bit_cast<I>(a); });
  expect_unary<T, I>(
      "to float", [](V a) { return bitcast(a, kFloat); }, [](I a) { return std::bit_cast<T>(a); });
}

template <class To, class From>
To truncated(From x) {
  using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
  const long double v = x;
  const bool fits = v > static_cast<long double>(std::numeric_limits<Wide>::min()) - 1 &&
                    v < static_cast<long double>(std::numeric_limits<Wide>::max()) + 1;
  return static_cast<To>(fits ? static_cast<Wide>(v) : std::numeric_limits<Wide>::min());
}

TYPED_TEST(Floats, ConversionToIntegersTruncatesAndGivesTheMinimumForWhatDoesNotFit) {
  using T = TypeParam;
  expect_unary<int32_t, T>(
      "i32", [](V a) { return convert(a, DType::I32); }, truncated<int32_t, T>);
  expect_unary<int64_t, T>(
      "i64", [](V a) { return convert(a, DType::I64); }, truncated<int64_t, T>);
  expect_unary<int16_t, T>(
      "i16", [](V a) { return convert(a, DType::I16); }, truncated<int16_t, T>);
  expect_unary<uint8_t, T>(
      "u8", [](V a) { return convert(a, DType::U8); }, truncated<uint8_t, T>);
  expect_unary<bool, T>(
      "bool", [](V a) { return convert(a, DType::Bool); }, [](T a) { return a != 0; });
}

TYPED_TEST(Floats, ConversionToFloatsRoundsToNearest) {
  using T = TypeParam;
  expect_unary<float, T>(
      "f32", [](V a) { return convert(a, DType::F32); }, [](T a) { return static_cast<float>(a); });
  expect_unary<double, T>(
      "f64", [](V a) { return convert(a, DType::F64); }, [](T a) { return static_cast<double>(a); });
}

TEST(Halves, EveryValueIsReadAndWrittenUnchanged) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    MapKernel kernel;
    const V x = input(kernel.graph, 0, dtype);
    kernel.inputs = {{dtype}};
    kernel.outputs = {DType::F32, dtype};
    kernel.results = {x.id(), x.id()};
    std::vector<uint16_t> in(65536), same(65536);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(65536);
    void* operands[] = {in.data(), wide.data(), same.data()};
    interpret(kernel, operands, nullptr, 65536, 0);
    for (size_t i = 0; i < in.size(); ++i) {
      const float want = dtype == DType::F16 ? half_to_float(in[i]) : bfloat_to_float(in[i]);
      ASSERT_EQ(bits_of(wide[i]), bits_of(want)) << i;
      if (!std::isnan(want)) {
        ASSERT_EQ(same[i], in[i]);
      }
    }
  }
}

TEST(Halves, RoundingIsToNearestEvenOnce) {
  // Neighbours of every float16 value, of the ties between them, and of the limits.
  std::vector<float> in;
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const float low = half_to_float(static_cast<uint16_t>(i)), high = half_to_float(static_cast<uint16_t>(i + 1));
    const float middle = i + 1 == 0x7c00 ? 65520.0f : low + (high - low) / 2;
    for (const float v : {low, middle, std::nextafterf(middle, 0), std::nextafterf(middle, 1e9f)}) in.push_back(v), in.push_back(-v);
  }
  for (uint32_t high = 0; high < 65536; ++high)
    for (const uint32_t low : {0x0000u, 0x7fffu, 0x8000u, 0x8001u}) in.push_back(std::bit_cast<float>(high << 16 | low));
  const auto half = run<float>([](std::vector<V> v) { return convert(v[0], DType::F16); }, in);
  const auto brain = run<float>([](std::vector<V> v) { return convert(v[0], DType::BF16); }, in);
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(bits_of(half[i]), bits_of(half_to_float(float_to_half(in[i])))) << in[i];
    ASSERT_EQ(bits_of(brain[i]), bits_of(bfloat_to_float(float_to_bfloat(in[i])))) << in[i];
  }
}

template <class T>
class Integers : public ::testing::Test {};
using IntegerTypes = ::testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, ArithmeticWraps) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  expect_binary<T, T>(
      "add", [](V a, V b) { return a + b; }, [](T a, T b) { return static_cast<T>(U(a) + U(b)); });
  expect_binary<T, T>(
      "sub", [](V a, V b) { return a - b; }, [](T a, T b) { return static_cast<T>(U(a) - U(b)); });
  expect_binary<T, T>(
      "mul", [](V a, V b) { return a * b; }, [](T a, T b) { return static_cast<T>(U(a) * U(b)); });
  expect_unary<T, T>(
      "neg", [](V a) { return -a; }, [](T a) { return static_cast<T>(U{0} - U(a)); });
  expect_unary<T, T>(
      "abs", [](V a) { return abs(a); }, [](T a) { return a < 0 ? static_cast<T>(U{0} - U(a)) : a; });
}

TYPED_TEST(Integers, DivisionByZeroGivesZeroAndTheLeastByMinusOneStays) {
  using T = TypeParam;
  constexpr T kLeast = std::numeric_limits<T>::min();
  expect_binary<T, T>(
      "div", [](V a, V b) { return a / b; }, [](T a, T b) { return b == 0                   ? T(0)
                                                                   : a == kLeast && b == -1 ? kLeast
                                                                                            : T(a / b); });
  expect_binary<T, T>(
      "rem", [](V a, V b) { return rem(a, b); }, [](T a, T b) { return b == 0 || b == -1 ? T(0) : T(a % b); });
}

TYPED_TEST(Integers, BitsAndShifts) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  expect_binary<T, T>(
      "and", [](V a, V b) { return a & b; }, [](T a, T b) { return a & b; });
  expect_binary<T, T>(
      "or", [](V a, V b) { return a | b; }, [](T a, T b) { return a | b; });
  expect_binary<T, T>(
      "xor", [](V a, V b) { return a ^ b; }, [](T a, T b) { return a ^ b; });
  expect_unary<T, T>(
      "not", [](V a) { return ~a; }, [](T a) { return ~a; });
  expect_binary<T, T>(
      "min", [](V a, V b) { return prim_min(a, b); }, [](T a, T b) { return std::min(a, b); });
  expect_binary<T, T>(
      "max", [](V a, V b) { return prim_max(a, b); }, [](T a, T b) { return std::max(a, b); });
  expect_binary<bool, T>(
      "lt", [](V a, V b) { return a < b; }, [](T a, T b) { return a < b; });
  expect_binary<bool, T>(
      "ne", [](V a, V b) { return a != b; }, [](T a, T b) { return a != b; });
  for (const int count : {0, 1, 7, 31}) {
    expect_unary<T, T>(
        "shl", [=](V a) { return shl(a, count); }, [=](T a) { return static_cast<T>(U(a) << count); });
    expect_unary<T, T>(
        "shr", [=](V a) { return shr(a, count); }, [=](T a) { return static_cast<T>(a >> count); });
    expect_unary<T, T>(
        "shru", [=](V a) { return shr_unsigned(a, count); }, [=](T a) { return static_cast<T>(U(a) >> count); });
  }
}

TYPED_TEST(Integers, ConversionWrapsOrRounds) {
  using T = TypeParam;
  expect_unary<uint8_t, T>(
      "u8", [](V a) { return convert(a, DType::U8); }, [](T a) { return static_cast<uint8_t>(a); });
  expect_unary<int8_t, T>(
      "i8", [](V a) { return convert(a, DType::I8); }, [](T a) { return static_cast<int8_t>(a); });
  expect_unary<int32_t, T>(
      "i32", [](V a) { return convert(a, DType::I32); }, [](T a) { return static_cast<int32_t>(a); });
  expect_unary<int64_t, T>(
      "i64", [](V a) { return convert(a, DType::I64); }, [](T a) { return static_cast<int64_t>(a); });
  expect_unary<float, T>(
      "f32", [](V a) { return convert(a, DType::F32); }, [](T a) { return static_cast<float>(a); });
  expect_unary<double, T>(
      "f64", [](V a) { return convert(a, DType::F64); }, [](T a) { return static_cast<double>(a); });
  expect_unary<float, T>(
      "f16", [](V a) { return convert(a, DType::F16); }, [](T a) { return half_to_float(float_to_half(static_cast<float>(a))); });
  expect_unary<bool, T>(
      "bool", [](V a) { return convert(a, DType::Bool); }, [](T a) { return a != 0; });
}

TEST(Integers32, HighHalfOfTheUnsignedProduct) {
  expect_binary<int32_t, int32_t>(
      "mul_hi", [](V a, V b) { return mul_hi_unsigned(a, b); },
      [](int32_t a, int32_t b) { return static_cast<int32_t>(uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b) >> 32); });
}

TEST(Bools, LogicComparesAndConverts) {
  const std::vector<int32_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  const auto logic = [&](const std::function<V(V, V)>& f) {
    return run<uint8_t>([&](std::vector<V> v) { return convert(f(convert(v[0], DType::Bool), convert(v[1], DType::Bool)), DType::U8); }, a,
                        b);
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(logic([](V x, V y) { return x & y; }), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(logic([](V x, V y) { return x | y; }), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(logic([](V x, V y) { return x ^ y; }), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(logic([](V x, V y) { return x == y; }), (Bytes{1, 0, 0, 1}));
  EXPECT_EQ(logic([](V x, V y) { return x != y; }), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(logic([](V x, V) { return ~x; }), (Bytes{1, 1, 0, 0}));
}

TEST(Select, TakesWhatTheConditionSaysForEveryWidth) {
  const std::vector<int32_t> c = {0, 1, 5, 0};
  const std::vector<double> x = {1, 2, 3, NAN}, y = {10, 20, 30, 40};
  const auto wide = run<double>([](std::vector<V> v) { return where(convert(v[0], DType::Bool), v[1], v[2]); }, c, x, y);
  EXPECT_EQ(wide, (std::vector<double>{10, 2, 3, 40}));
  const auto narrow = run<int32_t>([](std::vector<V> v) { return where(v[0] != v[0].lit(0), v[0] * 2, v[0] - 1); }, c);
  EXPECT_EQ(narrow, (std::vector<int32_t>{-1, 2, 10, -1}));
}

}  // namespace
}  // namespace naru::ir
