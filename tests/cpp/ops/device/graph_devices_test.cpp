// Graphs with several devices and streams, and with devices that are lost or lack a feature.
#include <gtest/gtest.h>

#include <thread>

#include "core/tensor_impl.h"
#include "naru/device/devices.h"
#include "naru/device/fallback.h"
#include "naru/device/graph.h"
#include "naru/device/virtual.h"
#include "naru/ops.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::text_of;

struct GraphsOfManyDevices : ::testing::Test {
  GraphsOfManyDevices() { set_virtual_devices("cuda:2(launch_delay=200us)"); }
  ~GraphsOfManyDevices() override { set_virtual_devices(""); }
  Options first{DType::F32, "cuda:0"}, second{DType::F32, "cuda:1"};
};

TEST_F(GraphsOfManyDevices, OtherDevicesWorkAsAlwaysInACapture) {
  Tensor x = ones({3}, first), y = ones({3}, second);
  Graph g;
  double sum = 0;
  g.capture(
      [&] {
        x.add_(1);
        sum = (y * 2).sum().item<double>() + (ones({2}) + 1).sum().item<double>();
      },
      "cuda:0");
  EXPECT_EQ(sum, 10);
  g.replay();
  EXPECT_EQ(x[0].item<double>(), 2);
}

TEST_F(GraphsOfManyDevices, WhatACaptureWritesIsNotForOtherDevices) {
  Tensor x = ones({3}, first), y = ones({3}, second), warm = ones({3}, first).to("cuda:1");
  Graph g;
  g.begin("cuda:0");
  x.add_(1);
  EXPECT_NE(text_of<RuntimeError>([&] { y.copy_(x); }).find("used outside the capture"), std::string::npos);
  EXPECT_THROW(g.end(), RuntimeError);
}

TEST_F(GraphsOfManyDevices, TwoGraphsRunOnTwoStreams) {
  Tensor x = ones({1000}, first), y = ones({1000}, first);
  Graph a, b;
  a.capture([&] { x.add_(1); }, "cuda:0");
  b.capture([&] { y.add_(x); }, "cuda:0");
  const Stream s("cuda:0"), t("cuda:0");
  for (int i = 0; i < 5; ++i) {
    const StreamGuard on_s(s);
    a.replay();
    const StreamGuard on_t(t);
    b.replay();
  }
  EXPECT_EQ(y[999].item<double>(), 1 + 2 + 3 + 4 + 5 + 6);
}

TEST_F(GraphsOfManyDevices, TheWorkOfAllStreamsOfTheDeviceIsRecorded) {
  Tensor x = ones({3}, first);
  const Stream side("cuda:0");
  Graph g;
  g.capture(
      [&] {
        side.wait(Stream::default_stream("cuda:0"));
        {
          const StreamGuard guard(side);
          x.add_(1);
        }
        Stream::default_stream("cuda:0").wait(side);
        x.mul_(3);
      },
      "cuda:0");
  g.replay();
  EXPECT_EQ(x[0].item<double>(), 6);
}

TEST_F(GraphsOfManyDevices, ALostDeviceIsToldAfterTheReplay) {
  set_virtual_devices("cuda:1(lose_after=4)");
  Tensor x = zeros({3}, first);
  Graph g;
  g.capture([&] { x.add_(1), x.sum(); }, "cuda:0");
  EXPECT_THROW(
      for (int i = 0; i < 5; ++i) {
        g.replay();
        synchronize("cuda:0");
      },
      DeviceLostError);
}

TEST_F(GraphsOfManyDevices, WhatTheDeviceDoesNotSupportCannotBeCaptured) {
  set_virtual_devices("cuda:1(without=cumsum)");
  const auto before = set_fallback_policy(FallbackPolicy::Count);
  Tensor x = ones({3}, first);
  Graph g;
  EXPECT_NE(text_of<RuntimeError>([&] { g.capture([&] { cumsum(x, 0); }, "cuda:0"); }).find("done on the cpu"), std::string::npos);
  set_fallback_policy(before);
}

}  // namespace
}  // namespace naru
