// How attention is described to cuDNN, and whether the real library, if installed, accepts it. (tests/python/backends/test_cuda_attention.py
// tests the results, with the fake library.)
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "backends/cuda/attention.h"
#include "backends/dnn_device.h"

namespace naru::backends::cuda {
namespace {

using ir::Attention;

constexpr int kNow = 91900;
constexpr Attention::Use kBoth[] = {Attention::Use::Forward, Attention::Use::Backward};

enum class HeadLayout { Rows, HeadsLast, Packed };

Sizes4 heads_laid(const Attention::Sizes& s, HeadLayout layout, int64_t packed) {
  if (layout == HeadLayout::Rows) return dense_strides(s);
  const int64_t each = layout == HeadLayout::Packed ? packed * s[1] * s[3] : s[1] * s[3];
  return {s[2] * each, s[3], each, 1};
}

Attention attention_of(Attention::Use use, int64_t heads, int64_t key_heads, int64_t queries, int64_t keys, int64_t width,
                       int64_t value_width, bool causal, HeadLayout layout = HeadLayout::Rows) {
  Attention a;
  a.use = use, a.dtype = DType::BF16, a.causal = causal, a.scale = 0.125;
  a.batch = 2, a.heads = heads, a.key_heads = key_heads, a.queries = queries, a.keys = keys, a.width = width, a.value_width = value_width;
  a.q.strides = heads_laid(a.sizes_of_q(), layout, 3), a.k.strides = heads_laid(a.sizes_of_k(), layout, 3);
  a.v.strides = heads_laid(a.sizes_of_v(), layout, 3);
  const HeadLayout beside = layout == HeadLayout::Packed ? HeadLayout::HeadsLast : layout;
  a.out.strides = a.dout.strides = heads_laid(a.sizes_of_out(), beside, 1), a.dq.strides = heads_laid(a.sizes_of_q(), beside, 1);
  a.dk.strides = heads_laid(a.sizes_of_k(), beside, 1), a.dv.strides = heads_laid(a.sizes_of_v(), beside, 1);
  return a;
}

TEST(CudaAttention, equal_work_has_one_plan_whatever_the_strides_of_sizes_of_one) {
  Attention a = attention_of(Attention::Use::Forward, 1, 1, 32, 32, 64, 64, true), b = a;
  b.q.strides[1] = 7, b.out.strides[1] = 0;
  ASSERT_TRUE(for_cudnn(a, kNow) && for_cudnn(b, kNow));
  EXPECT_TRUE(*for_cudnn(a, kNow) == *for_cudnn(b, kNow));
  b.causal = false;
  EXPECT_FALSE(*for_cudnn(a, kNow) == *for_cudnn(b, kNow));
}

TEST(CudaAttention, types_sizes_and_strides_that_the_library_does_not_take_are_declined) {
  const auto declined = [](auto change, int version = kNow, Attention::Use use = Attention::Use::Backward) {
    Attention a = attention_of(use, 4, 4, 32, 48, 64, 64, false);
    change(a);
    return !for_cudnn(a, version);
  };
  EXPECT_FALSE(declined([](Attention&) {}));
  EXPECT_TRUE(declined([](Attention& a) { a.dtype = DType::F32; }));
  EXPECT_TRUE(declined([](Attention& a) { a.width = 60; }));
  EXPECT_TRUE(declined([](Attention& a) { a.value_width = 264; }));
  EXPECT_TRUE(declined([](Attention& a) { a.key_heads = 3; }));
  EXPECT_TRUE(declined([](Attention& a) { a.keys = 1; }));
  EXPECT_TRUE(declined([](Attention& a) { a.queries = 0; }));
  EXPECT_TRUE(declined([](Attention& a) { a.q.strides[2] = 0; })) << "repeated";
  EXPECT_TRUE(declined([](Attention& a) { a.k.strides[3] = 2; }));
  EXPECT_TRUE(declined([](Attention& a) { a.v.strides[2] = 68; })) << "not 16 bytes at a time";
  EXPECT_TRUE(declined([](Attention& a) { a.dq.strides[1] = 4; }));
  EXPECT_TRUE(declined([](Attention& a) { a.batch = int64_t{1} << 20; })) << "more elements than it counts";
  EXPECT_TRUE(declined([](Attention&) {}, 91001)) << "known to be wrong";
  EXPECT_TRUE(declined([](Attention&) {}, 91500)) << "keys that do not fill tiles, backward";
  EXPECT_FALSE(declined([](Attention&) {}, 91500, Attention::Use::Forward));
  EXPECT_TRUE(declined([](Attention& a) { a.biased = true, a.bias_type = DType::F64; }));
  EXPECT_TRUE(declined([](Attention& a) { a.biased = a.causal = true, a.bias.strides = {0, 0, 48, 1}; }));
  EXPECT_FALSE(declined([](Attention& a) { a.biased = true, a.bias_type = DType::F32, a.bias.strides = {0, 0, 48, 1}; }));
}

TEST(CudaRealLibrary, nvidias_own_cudnn_takes_the_operations_of_attention) {
  const backends::gpu::VendorLibrary<Cudnn> library(13000);
  if (!library.get() || library.get()->version() < kNow) GTEST_SKIP() << "no cuDNN that tells without a device: " << library.text();
  if (!dlopen("libcuda.so.1", RTLD_LAZY)) GTEST_SKIP() << "without the driver's library, cuDNN proposes no engines that it compiles";
  const Cudnn& f = *library.get();
  const DnnCheck check = [](int status, const char* function) { ASSERT_EQ(status, 0) << function; };
  const DnnDescriptor device = testing::h100(f, check);
  const auto engines = [&](const Attention& a) {
    const auto told = for_cudnn(a, kNow);
    if (!told) return int64_t{-1};
    DnnGraph operations(f, check, static_cast<int64_t>(DnnOperand::Inner));
    add_attention(operations, *told);
    const DnnDescriptor graph = operations.finish(nullptr);
    return static_cast<int64_t>(engines_of(f, {nullptr, &device}, graph, check).size());
  };
  for (const Attention::Use use : kBoth) {
    for (const HeadLayout layout : {HeadLayout::Rows, HeadLayout::HeadsLast, HeadLayout::Packed})
      EXPECT_GT(engines(attention_of(use, 12, 12, 1024, 1024, 64, 64, true, layout)), 0);
    EXPECT_GT(engines(attention_of(use, 8, 2, 100, 77, 128, 64, false)), 0);
    EXPECT_GT(engines(attention_of(use, 8, 1, 512, 1024, 256, 256, true)), 0);
    Attention biased = attention_of(use, 8, 8, 333, 333, 72, 72, false);
    biased.biased = true, biased.bias_type = DType::BF16, biased.bias.strides = {333, 0, 0, 1};
    EXPECT_GT(engines(biased), 0);
  }
}

}  // namespace
}  // namespace naru::backends::cuda
