// Philox against its published vectors, and the distributions built on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/interpreter/interpret.h"
#include "ir/math/math.h"

namespace naru::ir {
namespace {

std::array<uint32_t, 4> words_of(uint64_t counter, uint64_t offset, uint64_t key) {
  MapKernel kernel;
  for (uint64_t i = 0; i < 3; ++i) kernel.inputs.push_back({DType::I64, true});
  const Words w = philox(input(kernel.graph, 0, DType::I64), input(kernel.graph, 1, DType::I64), input(kernel.graph, 2, DType::I64));
  for (const V& v : w.w) kernel.results.push_back(v.id()), kernel.outputs.push_back(DType::I32);
  std::array<uint32_t, 4> out{};
  void* operands[] = {&counter, &offset, &key, &out[0], &out[1], &out[2], &out[3]};
  interpret(kernel, operands, nullptr, 1, 0);
  return out;
}

TEST(Philox, GivesThePublishedWords) {
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ(words_of(0, 0, 0), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words_of(~0ull, ~0ull, ~0ull), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words_of(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822), (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<double> draw(VType type, bool normal, int64_t n) {
  MapKernel kernel;
  const V i = index(kernel.graph);
  const V value = normal ? normal01(i, i.lit(42), i.lit(0), type) : uniform01(i, i.lit(42), i.lit(0), type);
  EXPECT_EQ(value.type(), type);
  kernel.results = {convert(value, DType::F64).id()};
  kernel.outputs = {DType::F64};
  std::vector<double> out(static_cast<size_t>(n));
  void* operands[] = {out.data()};
  interpret(kernel, operands, nullptr, n, 0);
  return out;
}

TEST(Uniform, FillsTheUnitIntervalEvenly) {
  for (const VType type : {VType::F32, VType::F64}) {
    constexpr int64_t kCount = 400'000;
    const auto x = draw(type, false, kCount);
    int bins[100] = {};
    for (const double v : x) {
      ASSERT_GE(v, 0.0);
      ASSERT_LT(v, 1.0);
      ++bins[static_cast<int>(v * 100)];
    }
    double chi2 = 0;
    for (const int b : bins) chi2 += (b - kCount / 100.0) * (b - kCount / 100.0) / (kCount / 100.0);
    EXPECT_LT(chi2, 160);  // 99 degrees of freedom: exceeded with probability 1e-4
    EXPECT_GT(chi2, 50);   // suspiciously even below this
  }
}

TEST(Normal, HasTheDistributionOfGauss) {
  for (const VType type : {VType::F32, VType::F64}) {
    constexpr int64_t kCount = 400'000;
    auto x = draw(type, true, kCount);
    double mean = 0, square = 0;
    for (const double v : x) mean += v, square += v * v;
    EXPECT_NEAR(mean / kCount, 0, 0.008);
    EXPECT_NEAR(square / kCount, 1, 0.012);
    // Kolmogorov's distance exceeds 1.95 / sqrt(n) with probability 1e-3.
    std::sort(x.begin(), x.end());
    double distance = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(std::isfinite(x[i]));
      distance = std::max(distance, std::fabs(0.5 * std::erfc(-x[i] / std::sqrt(2.0)) - (static_cast<double>(i) + 0.5) / kCount));
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(kCount)));
  }
}

}  // namespace
}  // namespace naru::ir
