// Reading tensors on the host: values in range, elements of the right type, accessors and spans.
#include <cmath>
#include <numeric>

#include "naru/device/virtual.h"
#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

TEST(Item, IsTheNumberOrAnErrorWhereTheTypeCannotHoldIt) {
  const Tensor f = tensor({3.7, 1e20, -1.0, double(NAN), 255.9, 256.0}, DType::F64);
  EXPECT_EQ(f[0].item<int>(), 3);
  EXPECT_EQ(f[4].item<uint8_t>(), 255);
  EXPECT_EQ(text_of<RuntimeError>([&] { (void)f[1].item<int>(); }), "value cannot be converted to type int without overflow");
  EXPECT_EQ(text_of<RuntimeError>([&] { (void)f[1].item<int64_t>(); }), "value cannot be converted to type int64_t without overflow");
  EXPECT_EQ(text_of<RuntimeError>([&] { (void)f[2].item<unsigned>(); }), "value cannot be converted to type uint32_t without overflow");
  EXPECT_EQ(text_of<RuntimeError>([&] { (void)f[3].item<int>(); }), "value cannot be converted to type int without overflow");
  EXPECT_THROW((void)f[5].item<uint8_t>(), RuntimeError);
  EXPECT_THROW((void)tensor(300).item<uint8_t>(), RuntimeError);
  EXPECT_THROW((void)tensor(-1).item<uint64_t>(), RuntimeError);
  EXPECT_THROW((void)tensor(1e300, DType::F64).item<float>(), RuntimeError);
  EXPECT_EQ(tensor(-128).item<int8_t>(), -128);
  EXPECT_EQ(tensor(-9223372036854775807.0, DType::F64).item<int64_t>(), INT64_MIN);
  EXPECT_TRUE(std::isinf(tensor(INFINITY).item<float>()));
  EXPECT_TRUE(tensor(0.5).item<bool>());
}

TEST(Data, IsOfTheElementsTypeOrAnError) {
  const Tensor i = tensor({1, 2}), b = tensor({true, false}), h = ones({2}, DType::F16);
  EXPECT_EQ(i.data<int64_t>()[1], 2);
  EXPECT_EQ(*i.data_ptr<const int64_t>(), 1);
  expect_starts(text_of<RuntimeError>([&] { (void)i.data<float>(); }), "expected scalar type Float but found Long");
  EXPECT_TRUE(b.data<bool>()[0]);
  EXPECT_EQ(b.data<uint8_t>()[0], 1);
  EXPECT_EQ(h.data<uint16_t>()[0], 0x3c00);
  EXPECT_THROW((void)tensor({1}, DType::U8).data<bool>(), RuntimeError);
}

TEST(Accessors, ReadAndWriteElementsOfAnyStrides) {
  Tensor x = counted({2, 3});
  auto a = x.t().accessor<double, 2>();
  EXPECT_EQ(a[2][1], 5);
  a[0][1] = -1;
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, -1, 4, 5}));
  EXPECT_EQ(a.size(0), 3);
  EXPECT_THROW((x.accessor<double, 1>()), RuntimeError);
  EXPECT_THROW((x.accessor<float, 2>()), RuntimeError);
}

TEST(Spans, GiveIteratorsOverElementsInRowMajorOrder) {
  Tensor x = counted({2, 3});
  for (double& v : x.span<double>()) v *= 2;
  const auto all = x.span<const double>();
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), 30);
  EXPECT_THROW((void)x.t().span<double>(), RuntimeError);
  const VirtualDevices devices(DeviceType::Cuda, {});
  expect_starts(text_of<RuntimeError>([&] { (void)x.to("cuda").span<double>(); }), "span: wanted a tensor on cpu, got one on cuda:0");
}

TEST(To, BracesLeaveTheDtypeOrTheDeviceAsItIs) {
  const VirtualDevices devices(DeviceType::Cuda, {});
  for (const DType type : {DType::F64, DType::F16, DType::I32, DType::Bool}) {
    const Tensor x = counted({2, 3}).to(type);
    for (const bool late : {false, true}) {
      const Tensor same = x.to(x.device(), {}, late, false), copied = x.to(Device("cpu"), {}, late, true),
                   there = x.to(Device("cuda:0"), {}, late, false);
      EXPECT_EQ(same.impl(), x.impl());
      EXPECT_NE(copied.impl(), x.impl());
      for (const Tensor& t : {copied, there}) {
        EXPECT_EQ(t.dtype(), type);
        EXPECT_EQ(t.to_doubles(), x.to_doubles());
      }
      EXPECT_TRUE(there.is_cuda());
      const Tensor halves = there.to({}, DType::F16, late, false);
      EXPECT_TRUE(halves.is_cuda() && halves.dtype() == DType::F16);
      EXPECT_TRUE(x.to("cuda:0", DType::F32).is_cuda() && x.to(Device("cuda:0"), DType::F32).dtype() == DType::F32);
    }
  }
}

}  // namespace
}  // namespace naru
