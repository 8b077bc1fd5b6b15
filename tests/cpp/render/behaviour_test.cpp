// Edge cases of compiled kernels: every length and alignment, aliasing, streaming, several threads, missing instruction sets.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "render/code.h"
#include "render/kernel_support.h"

namespace naru::test {
namespace {

using ir::V;
using ir::VType;

ir::MapKernel sum_of(DType a, DType b, DType out) {
  ir::MapKernel k;
  k.inputs = {{a}, {b}};
  k.outputs = {out};
  const DType type = promote(promote(a, b), out);
  const V x = ir::convert(ir::input(k.graph, 0, a), type), y = ir::convert(ir::input(k.graph, 1, b), type);
  k.results = {ir::convert(type == DType::Bool ? x ^ y : x + y, out).id()};
  return k;
}

TEST(NativeKernels, ReadAndWriteNothingOutsideForEveryLengthAndType) {
  for (int t = 0; t < kDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    SCOPED_TRACE(std::string(name_of(dtype)));
    const ir::MapKernel kernel = sum_of(dtype, dtype, dtype);
    const auto functions = compile_all(kernel);
    Bits bits(static_cast<uint64_t>(t));
    for (int64_t n = 0; n <= 130; ++n)
      ASSERT_TRUE(agrees(kernel, functions, {mixed_elements(dtype, n, bits), mixed_elements(dtype, n, bits)}, {}, n));
  }
}

TEST(NativeKernels, WithOperandsOfSeveralWidthsKeepTheLanesTogether) {
  for (int a = 0; a < kDTypes; ++a)
    for (int b = 0; b < kDTypes; ++b) {
      const auto from = static_cast<DType>(a), to = static_cast<DType>(b);
      const ir::MapKernel kernel = sum_of(from, DType::F32, to);
      const auto functions = compile_all(kernel);
      Bits bits(static_cast<uint64_t>(a * kDTypes + b));
      for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 33, 64, 100})
        ASSERT_TRUE(agrees(kernel, functions, {mixed_elements(from, n, bits), mixed_elements(DType::F32, n, bits)}, {}, n))
            << name_of(from) << " " << name_of(to);
    }
}

TEST(NativeKernels, WithoutInputsFill) {
  for (int t = 0; t < kDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    ir::MapKernel kernel;
    kernel.params = {ir::vtype_of(dtype)};
    kernel.outputs = {dtype, dtype};
    kernel.results = {ir::convert(ir::param(kernel.graph, 0, ir::vtype_of(dtype)), dtype).id(),
                      ir::constant(kernel.graph, ir::vtype_of(dtype), 1).id()};
    for (const int64_t n : {0, 1, 5, 64, 130, 1000}) {
      Bits bits(static_cast<uint64_t>(t));
      EXPECT_TRUE(agrees(kernel, {}, {mixed_param(ir::vtype_of(dtype), bits)}, n)) << name_of(dtype);
    }
  }
}

// Runs a kernel on x and y that writes `first` over y and `second` over x.
void expect_crossed(V first, V second) {
  ir::MapKernel kernel;
  kernel.graph = first.graph();
  kernel.inputs = {{DType::F32}, {DType::F32}};
  kernel.outputs = {DType::F32, DType::F32};
  kernel.results = {first.id(), second.id()};
  for (const ir::MapFunction f : compile_all(kernel)) {
    ASSERT_NE(f, nullptr);
    for (int64_t n = 0; n <= 200; ++n) {
      std::vector<float> x(static_cast<size_t>(n)), y(x), new_x(x), new_y(x);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i) + 0.5f;
        y[i] = 3.0f * static_cast<float>(i);
      }
      void* apart[] = {x.data(), y.data(), new_y.data(), new_x.data()};
      ir::interpret(kernel, apart, nullptr, n, 0);
      void* crossed[] = {x.data(), y.data(), y.data(), x.data()};
      f(crossed, nullptr, n, 0);
      ASSERT_EQ(x, new_x) << n;
      ASSERT_EQ(y, new_y) << n;
    }
  }
}

TEST(NativeKernels, MayWriteOverTheirInputs) {
  ir::Graph g;
  const V x = ir::input(g, 0, DType::F32), y = ir::input(g, 1, DType::F32);
  expect_crossed(x, y);
  expect_crossed(x * x, y * y);
  expect_crossed(ir::sqrt(x), y);
  expect_crossed(x, y * x);
  expect_crossed(x + 1.0, ir::fma(y, y, x));
}

TEST(NativeKernels, StreamingStoresGiveTheSameBytes) {
  for (const DType t : {DType::F32, DType::F64, DType::I64, DType::F16, DType::U8}) {
    const ir::MapKernel kernel = sum_of(t, t, t);
    const auto plain = compile_all(kernel), streaming = compile_all(kernel, true);
    for (size_t k = 0; k < plain.size(); ++k) {
      ASSERT_NE(streaming[k], nullptr);
      Bits bits(3);
      for (const int64_t n : {1, 16, 64, 1000, 4099}) {
        const auto a = mixed_elements(t, n, bits), b = mixed_elements(t, n, bits);
        const size_t bytes = a.size();
        std::vector<uint8_t> x(bytes), y(bytes + 128);
        auto* aligned = y.data() + (64 - reinterpret_cast<uintptr_t>(y.data()) % 64) % 64;
        void* first[] = {const_cast<uint8_t*>(a.data()), const_cast<uint8_t*>(b.data()), x.data()};
        void* second[] = {const_cast<uint8_t*>(a.data()), const_cast<uint8_t*>(b.data()), aligned};
        plain[k](first, nullptr, n, 0);
        streaming[k](second, nullptr, n, 0);
        EXPECT_EQ(std::memcmp(x.data(), aligned, bytes), 0);
      }
    }
  }
}

TEST(NativeKernels, WithMoreOperandsThanRegistersWork) {
  ir::MapKernel kernel;
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<V> all;
  Bits bits(5);
  for (uint64_t i = 0; i < 40; ++i) {
    const DType t = i % 3 == 0 ? DType::F64 : i % 3 == 1 ? DType::F32 : DType::I16;
    kernel.inputs.push_back({t, i % 7 == 0});
    inputs.push_back(mixed_elements(t, i % 7 == 0 ? 1 : 300, bits));
    all.push_back(ir::convert(ir::input(kernel.graph, i, t), DType::F32));
  }
  V total = all[0];
  for (const V v : all) total = ir::fma(total, v, 0.5);
  for (size_t i = all.size(); i-- > 0;) total = ir::prim_max(total - all[i], all[i] * all[39 - i]);
  for (uint64_t i = 0; i < 20; ++i) {
    kernel.outputs.push_back(DType::F32);
    kernel.results.push_back((total + all[i] * static_cast<double>(i + 1)).id());
  }
  for (const int64_t n : {1, 31, 64, 300}) EXPECT_TRUE(agrees(kernel, inputs, {}, n));
}

#if defined(__x86_64__)
TEST(NativeKernels, KeepDenormalsAndTheControlWord) {
  for (const ir::MapFunction f : compile_all(sum_of(DType::F32, DType::F32, DType::F32))) {
    float a[20], b[20], c[20];
    for (int i = 0; i < 20; ++i) a[i] = 1e-42f, b[i] = 2e-42f;
    void* operands[] = {a, b, c};
    const unsigned before = __builtin_ia32_stmxcsr() & 0xffc0u;
    f(operands, nullptr, 20, 0);
    EXPECT_EQ(__builtin_ia32_stmxcsr() & 0xffc0u, before);
    for (const float x : c) EXPECT_EQ(x, 1e-42f + 2e-42f);
  }
}
#endif

TEST(NativeKernels, MayBeCompiledAndRunByManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([t, &wrong] {
      for (int round = 0; round < 30; ++round) {
        ir::MapKernel kernel;
        kernel.inputs = {{DType::F32}};
        kernel.outputs = {DType::F32};
        const V x = ir::input(kernel.graph, 0, DType::F32);
        V y = x * static_cast<double>(t + 1);
        for (int i = 0; i < round; ++i) y = ir::fma(y, x, static_cast<double>(i));
        kernel.results = {y.id()};
        for (const ir::MapFunction f : compile_all(kernel)) {
          std::vector<float> a(200), expected(200), got(200);
          for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) / 200;
          void* one[] = {a.data(), expected.data()};
          void* other[] = {a.data(), got.data()};
          ir::interpret(kernel, one, nullptr, 200, 0);
          if (f == nullptr) {
            ++wrong[t];
            continue;
          }
          f(other, nullptr, 200, 0);
          wrong[t] += std::memcmp(expected.data(), got.data(), 800) != 0;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

TEST(NativeKernels, AreNotMadeWithoutAnInstructionSet) {
  EXPECT_EQ(render::compile(sum_of(DType::F32, DType::F32, DType::F32), render::Isa::None), nullptr);
  ir::ReduceKernel reduce;
  reduce.map.inputs = {{DType::F32}};
  reduce.map.results = {ir::input(reduce.map.graph, 0, DType::F32).id()};
  reduce.op = ir::ReduceOp::Sum;
  reduce.type = VType::F32;
  EXPECT_EQ(render::compile_contiguous(reduce, render::Isa::None), nullptr);
  EXPECT_EQ(render::compile_strided(reduce, render::Isa::None), nullptr);
}

TEST(NativeKernels, AreKeptAndNamedByInstructionSet) {
  const std::vector<render::Isa> all = render::known_isas();
  EXPECT_LT(all.size(), render::kMostIsas);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  for (const render::Isa isa : all) EXPECT_EQ(render::isa_named(render::name_of(isa)), isa);
  EXPECT_EQ(render::isa_named("sse9"), render::Isa::None);
  EXPECT_STREQ(render::name_of(render::Isa::None), "none");
#if defined(__x86_64__)
  EXPECT_STREQ(render::name_of(all.front()), "avx2");
  EXPECT_STREQ(render::name_of(all.back()), "avx512");
#endif
}

TEST(NativeKernels, UseNoMoreThanTheEnvironmentAllows) {
  using render::choose_isa, render::Isa, render::name_of;
  std::vector<Isa> all = render::known_isas();
  all.insert(all.begin(), Isa::None);
  for (const Isa have : all) {
    EXPECT_EQ(choose_isa(have, nullptr, nullptr), have);
    EXPECT_EQ(choose_isa(have, "1", ""), have);
    EXPECT_EQ(choose_isa(have, "0", name_of(all.back())), Isa::None);
    for (const Isa wanted : all) EXPECT_EQ(choose_isa(have, nullptr, name_of(wanted)), std::min(have, wanted));
  }
  testing::internal::CaptureStderr();
  EXPECT_EQ(choose_isa(all.back(), nullptr, "sse9"), all.back());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("NARU_ISA=sse9 is unknown"), std::string::npos);
}

}  // namespace
}  // namespace naru::test
