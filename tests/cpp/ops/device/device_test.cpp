#include <gtest/gtest.h>

#include "naru/ops.h"
#include "runtime/device/registry.h"

namespace naru {
namespace {

class OnVirtualDevices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { runtime::set_virtual_devices("cuda:2,mps:1"); }
};

TEST_F(OnVirtualDevices, ATensorMovesAndComesBackUnchanged) {
  const Tensor x = arange(0, 1000, 1, DType::F32);
  const Tensor there = x.to("cuda:1");
  EXPECT_EQ(there.device().str(), "cuda:1");
  EXPECT_EQ(there.to("mps").to("cuda:0").cpu().to_doubles(), x.to_doubles());
}

TEST_F(OnVirtualDevices, MovingToWhereATensorIsGivesTheSameTensor) {
  const Tensor x = ones({3}), y = x.cuda();
  EXPECT_TRUE(x.cpu().is(x));
  EXPECT_TRUE(y.to("cuda").is(y));
  EXPECT_FALSE(y.to("cuda", false, true).is(y));
}

TEST_F(OnVirtualDevices, OperandsOnTwoDevicesAreAnErrorThatNamesBothAndTheRemedy) {
  const Tensor a = ones({2, 3}, Device("cuda:0")), b = ones({2, 3});
  try {
    const Tensor c = a + b;
    FAIL() << "the operator took operands on two devices";
  } catch (const DeviceMismatchError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.rfind("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!", 0), 0u) << text;
    EXPECT_NE(text.find("[2, 3]"), std::string::npos) << text;
    EXPECT_NE(text.find(".to(Device(\"cuda:0\"))"), std::string::npos) << text;
  }
}

TEST_F(OnVirtualDevices, ANumberInATensorWithoutDimensionsMayStandBesideAnyDevice) {
  const Tensor a = ones({3}, Device("cuda:0"));
  EXPECT_EQ((a + scalar_tensor(2.0)).device().str(), "cuda:0");
  EXPECT_EQ((scalar_tensor(2.0) * a).cpu().to_doubles(), (std::vector<double>{2, 2, 2}));
}

TEST_F(OnVirtualDevices, ADeviceThatIsNotThereIsAnError) {
  EXPECT_THROW(ones({1}, Device("cuda:7")), Error);
  EXPECT_THROW(ones({1}, Device("xpu")), DeviceUnavailableError);
  EXPECT_THROW(Device("gpu"), RuntimeError);
  EXPECT_THROW(Device("cuda:-1"), RuntimeError);
  EXPECT_THROW(Device("cuda:1x"), RuntimeError);
}

TEST_F(OnVirtualDevices, GradientsFlowThroughMoves) {
  Tensor x = ones({3}).requires_grad_();
  (x.cuda() * 2).cpu().sum().backward();
  EXPECT_EQ(x.grad().device().str(), "cpu");
  EXPECT_EQ(x.grad().to_doubles(), (std::vector<double>{2, 2, 2}));
}

TEST_F(OnVirtualDevices, WorkOnADeviceGivesTheCpusBits) {
  const Tensor x = linspace(-3, 3, 50001);
  const auto work = [](const Tensor& t) { return (t.exp().sin() * t.tanh()).to_doubles(); };
  EXPECT_EQ(work(x), work(x.cuda()));
}

}  // namespace
}  // namespace naru
