// The definitions of mathematics, compiled, against the interpreter, bit for bit: the largest graphs that kernels contain.
#include <cstring>

#include "ir/math/math.h"
#include "render/kernel_support.h"

namespace naru::test {
namespace {

using ir::V;
using ir::VType;

struct Unary {
  const char* name;
  V (*f)(V);
};

TEST(NativeMathematics, FunctionsOfOneNumberEqualTheInterpreter) {
  constexpr Unary kFunctions[] = {
      {"exp", ir::exp},     {"exp2", ir::exp2},     {"expm1", ir::expm1},     {"log", ir::log},          {"log2", ir::log2},
      {"log10", ir::log10}, {"log1p", ir::log1p},   {"sin", ir::sin},         {"cos", ir::cos},          {"tan", ir::tan},
      {"asin", ir::asin},   {"acos", ir::acos},     {"atan", ir::atan},       {"sinh", ir::sinh},        {"cosh", ir::cosh},
      {"tanh", ir::tanh},   {"asinh", ir::asinh},   {"acosh", ir::acosh},     {"atanh", ir::atanh},      {"erf", ir::erf},
      {"erfc", ir::erfc},   {"erfinv", ir::erfinv}, {"lgamma", ir::lgamma},   {"digamma", ir::digamma},  {"normal_cdf", ir::normal_cdf},
      {"rsqrt", ir::rsqrt}, {"sign", ir::sign},     {"sigmoid", ir::sigmoid}, {"softplus", ir::softplus}};
  for (const Unary& function : kFunctions)
    for (const DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      SCOPED_TRACE(std::string(function.name) + " of " + std::string(name_of(t)));
      Bits bits(static_cast<uint64_t>(t));
      ir::MapKernel kernel;
      kernel.inputs = {{t}};
      kernel.outputs = {t};
      const V y = function.f(ir::input(kernel.graph, 0, t));
      kernel.results = {ir::convert(y, t).id()};
      const auto functions = compile_all(kernel);
      for (const int64_t n : {5, 3001}) EXPECT_TRUE(agrees(kernel, functions, {mixed_elements(t, n, bits)}, {}, n));
    }
}

TEST(NativeMathematics, FunctionsOfTwoNumbersEqualTheInterpreter) {
  struct Binary {
    const char* name;
    V (*f)(V, V);
    bool integers;
  };
  constexpr Binary kFunctions[] = {{"atan2", ir::atan2, false},        {"pow", ir::pow, false},
                                   {"maximum", ir::maximum, true},     {"minimum", ir::minimum, true},
                                   {"remainder", ir::remainder, true}, {"floor_divide", ir::floor_divide, true}};
  for (const Binary& function : kFunctions)
    for (const DType t : {DType::I32, DType::I64, DType::F32, DType::F64}) {
      if (!is_floating(t) && !function.integers) continue;
      SCOPED_TRACE(std::string(function.name) + " of " + std::string(name_of(t)));
      Bits bits(static_cast<uint64_t>(t));
      ir::MapKernel kernel;
      kernel.inputs = {{t}, {t}};
      kernel.outputs = {t};
      kernel.results = {function.f(ir::input(kernel.graph, 0, t), ir::input(kernel.graph, 1, t)).id()};
      const auto functions = compile_all(kernel);
      for (const int64_t n : {5, 3001})
        EXPECT_TRUE(agrees(kernel, functions, {mixed_elements(t, n, bits), mixed_elements(t, n, bits)}, {}, n));
    }
}

TEST(NativeMathematics, PowersOfIntegersEqualTheInterpreter) {
  for (const DType t : {DType::I32, DType::I64}) {
    Bits bits(1);
    ir::MapKernel kernel;
    kernel.inputs = {{t}, {t}};
    kernel.outputs = {t};
    kernel.results = {ir::pow_int(ir::input(kernel.graph, 0, t), ir::input(kernel.graph, 1, t)).id()};
    EXPECT_TRUE(agrees(kernel, {mixed_elements(t, 999, bits), mixed_elements(t, 999, bits)}, {}, 999));
  }
}

TEST(NativeMathematics, RandomNumbersEqualTheInterpreters) {
  for (const VType t : {VType::F32, VType::F64}) {
    ir::MapKernel kernel;
    kernel.params = {VType::I64, VType::I64};
    kernel.outputs = {dtype_of(t), dtype_of(t), DType::I32};
    const V i = ir::index(kernel.graph), offset = ir::param(kernel.graph, 0, VType::I64), key = ir::param(kernel.graph, 1, VType::I64);
    kernel.results = {ir::uniform01(i, key, offset, t).id(), ir::normal01(i, key, offset, t).id(), ir::philox(i, offset, key).w[3].id()};
    EXPECT_TRUE(agrees(kernel, {}, {123, 0xdeadbeefcafe}, 5000, int64_t{1} << 33));
  }
}

// Groups of lanes in which where_usually() holds everywhere, in some lanes and nowhere take different ways through a kernel.
TEST(NativeMathematics, ShortcutsForUsualNumbersEqualTheInterpreter) {
  const auto elements = [](int64_t n, int64_t unusual_from, int64_t unusual_every, uint64_t seed) {
    Bits bits(seed);
    std::vector<uint8_t> data(static_cast<size_t>(n) * sizeof(float));
    for (int64_t i = 0; i < n; ++i) {
      auto x = static_cast<float>(static_cast<double>(bits.below(1 << 24)) * 0x1p-20 + 0.01);  // up to 16
      if (i >= unusual_from && i % unusual_every == 0) x = bits.below(2) ? -x * 0x1p40F : x * 0x1p100F;
      std::memcpy(&data[static_cast<size_t>(i) * sizeof x], &x, sizeof x);
    }
    return data;
  };
  for (const bool fused : {false, true})
    for (const Unary& function :
         {Unary{"sin", ir::sin}, Unary{"cos", ir::cos}, Unary{"tan", ir::tan}, Unary{"pow", [](V x) { return ir::pow(x, x * 0.3); }}}) {
      SCOPED_TRACE(function.name);
      ir::MapKernel kernel;
      kernel.inputs = {{DType::F32}, {DType::F32}};
      const V x = ir::input(kernel.graph, 0, DType::F32), other = ir::input(kernel.graph, 1, DType::F32);
      // With two conditions of the kind, one of them is asked.
      kernel.outputs = {DType::F32};
      kernel.results = {(fused ? function.f(x) + ir::cos(other) : function.f(x) + other).id()};
      const auto functions = compile_all(kernel);
      for (const int64_t n : {1, 15, 64, 3001})
        for (const int64_t from : {int64_t{0}, n / 2, n})
          for (const int64_t every : {1, 7, 100})
            EXPECT_TRUE(agrees(kernel, functions, {elements(n, from, every, 1), elements(n, n / 3, every, 2)}, {}, n))
                << n << " " << from << " " << every;
    }
}

}  // namespace
}  // namespace naru::test
