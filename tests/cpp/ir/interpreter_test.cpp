// The interpreter: kernels of any length, and the same bits with AVX2.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/interpreter/interpret.h"
#include "ir/interpreter/interpret_loops.h"

namespace naru::ir {
namespace {

TEST(Interpreter, RunsAnyNumberOfElementsAndTouchesNoOthers) {
  for (const int64_t n : {0, 1, 7, 255, 256, 257, 1000}) {
    MapKernel kernel;
    const V x = input(kernel.graph, 0, DType::I16), s = input(kernel.graph, 1, DType::F64), p = param(kernel.graph, 0, VType::I64);
    kernel.inputs = {{DType::I16}, {DType::F64, true}};
    kernel.params = {VType::I64};
    kernel.outputs = {DType::F64};
    kernel.results = {(convert(x, DType::F64) * s + convert(p + index(kernel.graph), DType::F64)).id()};
    std::vector<int16_t> in(static_cast<size_t>(n) + 1, 3);
    std::vector<double> out(static_cast<size_t>(n) + 1, -7);
    double scalar = 0.5;
    const uint64_t params[] = {static_cast<uint64_t>(-100)};
    void* operands[] = {in.data(), &scalar, out.data()};
    interpret(kernel, operands, params, n, 40);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 1.5 + static_cast<double>(i) - 60);
    EXPECT_EQ(out.back(), -7);
  }
}

TEST(Interpreter, WritesOverItsOwnInputs) {
  MapKernel kernel;
  const V a = input(kernel.graph, 0, DType::F32), b = input(kernel.graph, 1, DType::F32);
  kernel.inputs = {{DType::F32}, {DType::F32}};
  kernel.outputs = {DType::F32, DType::F32};
  kernel.results = {b.id(), a.id()};  // swaps
  std::vector<float> x(600), y(600);
  for (size_t i = 0; i < 600; ++i) x[i] = static_cast<float>(i), y[i] = -static_cast<float>(i);
  const auto old_x = x, old_y = y;
  void* operands[] = {x.data(), y.data(), x.data(), y.data()};
  interpret(kernel, operands, nullptr, 600, 0);
  EXPECT_EQ(x, old_y);
  EXPECT_EQ(y, old_x);
}

TEST(Interpreter, ReusesScratchMemoryWithoutMixingValuesUp) {
  // A graph that is first wide, then deep: sum over k of (x + k) * (x - k), with every product live until the end.
  MapKernel kernel;
  const V x = input(kernel.graph, 0, DType::I64);
  kernel.inputs = {{DType::I64}};
  std::vector<V> products;
  for (int k = 0; k < 40; ++k) products.push_back((x + k) * (x - k));
  V sum = products[0];
  for (int k = 1; k < 40; ++k) sum = sum + products[static_cast<size_t>(40 - k)];
  kernel.outputs = {DType::I64};
  kernel.results = {sum.id()};
  std::vector<int64_t> in(300), out(300);
  for (size_t i = 0; i < 300; ++i) in[i] = static_cast<int64_t>(i * i);
  void* operands[] = {in.data(), out.data()};
  interpret(kernel, operands, nullptr, 300, 0);
  for (size_t i = 0; i < 300; ++i) {
    int64_t want = 0;
    for (int64_t k = 0; k < 40; ++k) want += (in[i] + k) * (in[i] - k);
    ASSERT_EQ(out[i], want);
  }
}

#if defined(__x86_64__)
TEST(Interpreter, GivesTheSameBitsWithAndWithoutAvx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no AVX2";
  for (const DType type : {DType::F32, DType::F64, DType::I32, DType::I64}) {
    const size_t size = size_of(type);
    constexpr int64_t kCount = 1003;
    std::vector<std::byte> a(kCount * 8), b(kCount * 8), c(kCount * 8), plain(kCount * 8), fast(kCount * 8);
    uint64_t state = 1;
    for (auto* v : {&a, &b, &c})
      for (auto& byte : *v) byte = static_cast<std::byte>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
    for (int p = static_cast<int>(Prim::Add); p < kPrims; ++p) {
      const Prim prim = static_cast<Prim>(p);
      const bool floats = is_floating(type);
      const bool bit_op = prim >= Prim::And && prim <= Prim::MulHiU;
      const bool float_op = prim == Prim::Fma || prim == Prim::Sqrt || (prim >= Prim::Floor && prim <= Prim::Scale);
      if ((floats && bit_op) || (!floats && float_op) || (prim == Prim::MulHiU && type != DType::I32)) continue;
      if (prim == Prim::Select || prim == Prim::Scale || (prim >= Prim::Shl && prim <= Prim::ShrU)) continue;  // other operand types
      const bool compares = prim >= Prim::Lt && prim <= Prim::Ne;
      VType result = compares ? VType::Bool : vtype_of(type);
      if (prim == Prim::Bitcast) result = floats ? (size == 4 ? VType::I32 : VType::I64) : (size == 4 ? VType::F32 : VType::F64);
      const Node node{.prim = prim, .type = result, .dtype = type == DType::F32 ? DType::I16 : DType::F32};
      kPlainLoops.node(node, vtype_of(type), plain.data(), a.data(), b.data(), c.data(), kCount);
      kAvx2Loops.node(node, vtype_of(type), fast.data(), a.data(), b.data(), c.data(), kCount);
      const size_t out_size = prim == Prim::Convert ? 4 : size_of(result);
      for (size_t i = 0; i < kCount; ++i) {
        if (out_size == 4 && (result == VType::F32 || prim == Prim::Convert)) {
          float x, y;
          std::memcpy(&x, &plain[i * 4], 4), std::memcpy(&y, &fast[i * 4], 4);
          if (std::isnan(x) && std::isnan(y)) continue;
        }
        if (result == VType::F64) {
          double x, y;
          std::memcpy(&x, &plain[i * 8], 8), std::memcpy(&y, &fast[i * 8], 8);
          if (std::isnan(x) && std::isnan(y)) continue;
        }
        ASSERT_EQ(std::memcmp(&plain[i * out_size], &fast[i * out_size], out_size), 0)
            << "primitive " << p << " of " << name_of(type) << ", element " << i;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace naru::ir
