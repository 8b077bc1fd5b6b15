#include "naru/optim/amp.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "naru/device/virtual.h"
#include "naru/naru.h"

namespace naru {
namespace {

Tensor some(Device device, DType dtype = DType::F32) {
  manual_seed(3);
  return (rand({4, 4}) * 0.5 + 0.25).to(device).to(dtype);
}

class Amp : public ::testing::TestWithParam<DeviceType> {
 protected:
  VirtualDevices devices_{DeviceType::Cuda, {.count = 1}};
  Device device_{GetParam(), 0};
  DType half_ = GetParam() == DeviceType::Cpu ? DType::BF16 : DType::F16;
};

TEST_P(Amp, ProductsAreIn16BitsAndLossesInFloat32) {
  const Tensor a = some(device_), b = some(device_, half_);
  const Tensor target = zeros({4}, Options(DType::I64, device_));
  Autocast block(device_.type);
  for (const Tensor& y : {matmul(a, b), mm(a, b), a.matmul(b), linear(a, b), addmm(a, a, b), bmm(a.unsqueeze(0), b.unsqueeze(0))})
    EXPECT_EQ(y.dtype(), half_);
  EXPECT_EQ(cross_entropy(b, target).dtype(), DType::F32);
  EXPECT_EQ(mse_loss(b, b).dtype(), DType::F32);
  EXPECT_EQ((b + b).dtype(), half_);
  EXPECT_EQ(cat({a, b}).dtype(), DType::F32);
  EXPECT_EQ(matmul(a.to(DType::F64), a.to(DType::F64)).dtype(), DType::F64);
}

TEST_P(Amp, ComposedFunctionsCastAsTheListsSay) {
  const Tensor a = some(device_), b = some(device_, half_);
  const bool cpu = device_.is_cpu();
  Autocast block(device_.type);
  for (const Tensor& y : {baddbmm(a.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0)), prelu(a, a[0])}) EXPECT_EQ(y.dtype(), half_);
  for (const Tensor& y : {cdist(b, b), huber_loss(b, b), kl_div(b, b), soft_margin_loss(b, b), triplet_margin_loss(b, b, b * 2.0)})
    EXPECT_EQ(y.dtype(), DType::F32);
  for (const Tensor& y : {dist(b, b), cosine_similarity(b, b), tensordot(a, b, 1)}) EXPECT_EQ(y.dtype(), cpu ? half_ : DType::F32);
  EXPECT_EQ(addcmul(a, b, b).dtype(), DType::F32);
  EXPECT_EQ(trace(b).dtype(), DType::F32);
  if (cpu)
    EXPECT_EQ(quantile(b, 0.5).dtype(), DType::F32);
  else
    EXPECT_THROW(quantile(b, 0.5), RuntimeError);  // not on autocast's list for GPUs, and not implemented for 16-bit types
}

TEST_P(Amp, BlocksNestAndBelongToTheThread) {
  const Tensor a = some(device_);
  {
    Autocast outer(device_.type, DType::BF16);
    {
      Autocast inner(device_.type, {}, false);
      EXPECT_EQ(matmul(a, a).dtype(), DType::F32);
    }
    EXPECT_EQ(matmul(a, a).dtype(), DType::BF16);
    DType elsewhere{};
    std::thread([&] { elsewhere = matmul(a, a).dtype(); }).join();
    EXPECT_EQ(elsewhere, DType::F32);
  }
  EXPECT_EQ(matmul(a, a).dtype(), DType::F32);
  EXPECT_THROW(Autocast(device_.type, DType::F32), TypeError);
}

TEST_P(Amp, GradientsComeBackInTheTypeOfTheWeight) {
  Tensor w = some(device_).requires_grad_();
  const Tensor x = some(device_);
  {
    Autocast block(device_.type);
    const Tensor y = matmul(x, w);
    EXPECT_EQ(y.dtype(), half_);
    mse_loss(y, x).backward();
  }
  ASSERT_EQ(w.grad().dtype(), DType::F32);
  Tensor exact = some(device_).requires_grad_();
  mse_loss(matmul(x, exact), x).backward();
  EXPECT_TRUE(allclose(w.grad().cpu(), exact.grad().cpu(), 0.05, 0.01));
}

TEST_P(Amp, AStepWithBadGradientsIsSkippedAndSaysWhy) {
  Tensor w = some(device_).requires_grad_();
  const Tensor before = w.detach().clone();
  optim::SGD optimizer({w}, 0.1);
  GradScaler scaler({.init_scale = 4, .growth_interval = 2});
  scaler.scale(sum(w * std::numeric_limits<double>::infinity())).backward();
  EXPECT_FALSE(scaler.step(optimizer));
  EXPECT_NE(scaler.why().find("1 of 1 gradients are not finite"), std::string::npos) << scaler.why();
  EXPECT_TRUE(equal(w.detach(), before));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 2);
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    scaler.scale(sum(w)).backward();
    scaler.unscale_(optimizer);
    EXPECT_TRUE(equal(w.grad().cpu(), ones({4, 4})));
    EXPECT_THROW(scaler.unscale_(optimizer), RuntimeError);
    EXPECT_TRUE(scaler.step(optimizer));
    EXPECT_THROW(scaler.step(optimizer), RuntimeError);
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_TRUE(allclose(w.detach().cpu(), (before - 0.2).cpu()));
}

TEST(GradScaler, RefusesWhatCannotBeScaled) {
  EXPECT_THROW(GradScaler({.growth_factor = 1}), ValueError);
  EXPECT_THROW(GradScaler({.backoff_factor = 1}), ValueError);
  Tensor w = ones({2}).to(DType::F16).requires_grad_();
  optim::SGD optimizer({w}, 0.1);
  GradScaler scaler;
  EXPECT_THROW(scaler.unscale_(optimizer), RuntimeError);  // before scale()
  EXPECT_THROW(scaler.update(), RuntimeError);
  scaler.scale(sum(w, {}, false, DType::F32)).backward();
  EXPECT_THROW(scaler.step(optimizer), ValueError);
}

INSTANTIATE_TEST_SUITE_P(Devices, Amp, ::testing::Values(DeviceType::Cpu, DeviceType::Cuda),
                         [](const auto& info) { return info.param == DeviceType::Cpu ? "cpu" : "virtual_cuda"; });

}  // namespace
}  // namespace naru
