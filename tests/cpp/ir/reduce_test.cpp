// Reductions in the interpreter: the order specified in ir/reduce.h, identities, NaN.
#include "ir/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/interpreter/interpret.h"

namespace naru::ir {
namespace {

template <class T>
constexpr DType kDTypeOf = std::is_same_v<T, float>     ? DType::F32
                           : std::is_same_v<T, double>  ? DType::F64
                           : std::is_same_v<T, int32_t> ? DType::I32
                                                        : DType::I64;

ReduceKernel plain_kernel(ReduceOp op, DType dtype) {
  ReduceKernel kernel;
  kernel.map.inputs = {{dtype}};
  const V x = input(kernel.map.graph, 0, dtype);
  kernel.map.results = {x.id()};
  kernel.op = op;
  kernel.type = x.type();
  return kernel;
}

std::vector<float> noise(size_t n, uint64_t state = 1) {
  std::vector<float> out(n);
  for (float& v : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = std::ldexp(static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)), -23 + static_cast<int>(state >> 33 & 7));
  }
  return out;
}

TEST(ContiguousReduction, AddsInSixtyFourLanesThenInATree) {
  for (const int64_t n : {0, 1, 5, 63, 64, 65, 300, 1000, 16384}) {
    const auto x = noise(static_cast<size_t>(n));
    float lanes[64] = {};
    for (size_t i = 0; i < x.size(); ++i) lanes[i % 64] += x[i];
    for (int half = 32; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    float got = -1;
    void* inputs[] = {const_cast<float*>(x.data())};
    interpret_contiguous(plain_kernel(ReduceOp::Sum, DType::F32), inputs, nullptr, n, 0, &got);
    EXPECT_EQ(got, lanes[0]) << n;
  }
}

TEST(StridedReduction, TakesRowsInOrder) {
  const int64_t rows = 37, cols = 300, pitch = 311;
  const auto x = noise(static_cast<size_t>(rows * pitch));
  std::vector<float> want(300, 0), got(300, 0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) want[static_cast<size_t>(c)] += x[static_cast<size_t>(r * pitch + c)];
  void* inputs[] = {const_cast<float*>(x.data())};
  const int64_t strides[] = {pitch * 4};
  const ReduceKernel kernel = plain_kernel(ReduceOp::Sum, DType::F32);
  interpret_strided(kernel, inputs, strides, nullptr, 5, cols, 0, 0, got.data(), 0);
  inputs[0] = const_cast<float*>(x.data() + 5 * pitch);
  interpret_strided(kernel, inputs, strides, nullptr, rows - 5, cols, 0, 0, got.data(), 0);
  EXPECT_EQ(got, want);
}

TEST(StridedReduction, StartsFromTheIdentityAndNoRowsChangeNothing) {
  double got[3] = {1, 1, 1};
  fill_identity(ReduceOp::Max, VType::F64, got, 3);
  void* inputs[] = {nullptr};
  const int64_t strides[] = {0};
  interpret_strided(plain_kernel(ReduceOp::Max, DType::F64), inputs, strides, nullptr, 0, 3, 0, 0, got, 0);
  for (const double v : got) EXPECT_EQ(v, -std::numeric_limits<double>::infinity());
}

TEST(StridedReduction, CountsIndexByRowAndColumn) {
  ReduceKernel kernel;
  const V i = index(kernel.map.graph);
  kernel.map.results = {i.id()};
  kernel.op = ReduceOp::Sum;
  kernel.type = VType::I64;
  std::vector<int64_t> got(3);
  interpret_strided(kernel, nullptr, nullptr, nullptr, 2, 3, 100, 10, got.data(), 0);
  EXPECT_EQ(got, (std::vector<int64_t>{210, 212, 214}));
}

TEST(ContiguousReduction, ReducesWhatTheExpressionGives) {
  ReduceKernel kernel;
  kernel.map.inputs = {{DType::F16}, {DType::F32, true}};
  kernel.map.params = {VType::F32};
  const V x = input(kernel.map.graph, 0, DType::F16), s = input(kernel.map.graph, 1, DType::F32),
          p = param(kernel.map.graph, 0, VType::F32);
  kernel.map.results = {((x * s) > p).id()};
  kernel.op = ReduceOp::Any;
  kernel.type = VType::Bool;
  std::vector<uint16_t> halves(500, float_to_half(1.0f));
  float two = 2;
  const uint64_t limit[] = {std::bit_cast<uint32_t>(3.0f)};
  void* inputs[] = {halves.data(), &two};
  uint8_t got = 9;
  interpret_contiguous(kernel, inputs, limit, 500, 0, &got);
  EXPECT_EQ(got, 0);
  halves[333] = float_to_half(1.75f);
  interpret_contiguous(kernel, inputs, limit, 500, 0, &got);
  EXPECT_EQ(got, 1);
}

template <class T>
T reduce(ReduceOp op, const std::vector<T>& x) {
  T out{};
  void* inputs[] = {const_cast<T*>(x.data())};
  interpret_contiguous(plain_kernel(op, kDTypeOf<T>), inputs, nullptr, static_cast<int64_t>(x.size()), 0, &out);
  return out;
}

TEST(Reductions, MaxAndMinGiveNaNWhereverItStands) {
  for (size_t at : {0, 63, 64, 99}) {
    std::vector<float> x(100, 1);
    x[at] = NAN;
    x[50] = 5;
    EXPECT_TRUE(std::isnan(reduce(ReduceOp::Max, x))) << at;
    EXPECT_TRUE(std::isnan(reduce(ReduceOp::Min, x))) << at;
  }
}

TEST(Reductions, ExtremesAndProductsOfEveryType) {
  EXPECT_EQ(reduce<float>(ReduceOp::Max, {-3, -1, -2}), -1);
  EXPECT_EQ(reduce<double>(ReduceOp::Min, {3, 1, 2}), 1);
  EXPECT_EQ(reduce<int32_t>(ReduceOp::Max, {-3, -1, -2}), -1);
  EXPECT_EQ(reduce<int64_t>(ReduceOp::Min, {-3, -1, -2}), -3);
  EXPECT_EQ(reduce<int64_t>(ReduceOp::Prod, {-3, -1, -2}), -6);
  EXPECT_EQ(reduce<double>(ReduceOp::Prod, {0.5, 4, 3}), 6);
  EXPECT_EQ(reduce<int32_t>(ReduceOp::Sum, {std::numeric_limits<int32_t>::max(), 1}), std::numeric_limits<int32_t>::min());
}

TEST(Reductions, OfNothingGiveTheIdentity) {
  EXPECT_EQ(reduce<float>(ReduceOp::Sum, {}), 0);
  EXPECT_EQ(reduce<double>(ReduceOp::Prod, {}), 1);
  EXPECT_EQ(reduce<int32_t>(ReduceOp::Max, {}), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(reduce<int64_t>(ReduceOp::Min, {}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(reduce<float>(ReduceOp::Min, {}), std::numeric_limits<float>::infinity());
}

// Trees and partial results use combine_values; renderers compile combine(). They must agree.
TEST(Reductions, CombinedValuesAreThoseOfTheExpression) {
  const std::vector<float> special = {0.0f, -0.0f, 1.0f, -2.5f, HUGE_VALF, -HUGE_VALF, NAN};
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min}) {
    std::vector<float> a, b;
    for (const float x : special)
      for (const float y : special) a.push_back(x), b.push_back(y);
    MapKernel kernel;
    kernel.inputs = {{DType::F32}, {DType::F32}};
    kernel.outputs = {DType::F32};
    kernel.results = {combine(op, input(kernel.graph, 0, DType::F32), input(kernel.graph, 1, DType::F32)).id()};
    std::vector<float> want(a.size()), got = a;
    void* operands[] = {a.data(), b.data(), want.data()};
    interpret(kernel, operands, nullptr, static_cast<int64_t>(a.size()), 0);
    combine_values(op, VType::F32, got.data(), b.data(), static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(got[i]));
      else
        EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << a[i] << ", " << b[i];
    }
  }
}

TEST(Reductions, CombineBoolsAsLogic) {
  uint8_t a[] = {0, 0, 1, 1}, any[4], all[4];
  const uint8_t b[] = {0, 1, 0, 1};
  std::memcpy(any, a, 4), std::memcpy(all, a, 4);
  combine_values(ReduceOp::Any, VType::Bool, any, b, 4);
  combine_values(ReduceOp::All, VType::Bool, all, b, 4);
  EXPECT_EQ(std::vector<uint8_t>(any, any + 4), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(std::vector<uint8_t>(all, all + 4), (std::vector<uint8_t>{0, 0, 0, 1}));
}

}  // namespace
}  // namespace naru::ir
