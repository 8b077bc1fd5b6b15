// Image modules, and windows (ops/nn/windows.h), from C++.
#include <gtest/gtest.h>

#include "naru/naru.h"

namespace naru {
namespace {

TEST(Images, a_small_network_trains_and_prints_as_pytorchs_does) {
  manual_seed(1);
  nn::Sequential model(nn::Conv2d(1, 4, {3}, {.padding = 1, .bias = false}), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(2),
                       nn::ConvTranspose2d(4, 2, {2}, {.stride = {2}}), nn::GroupNorm(2, 2), nn::AdaptiveAvgPool2d(2), nn::Flatten(),
                       nn::Linear(8, 3));
  EXPECT_NE(model.str().find("Conv2d(1, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)"), std::string::npos)
      << model.str();
  EXPECT_NE(model.str().find("BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
            std::string::npos);
  const Tensor x = randn({6, 1, 8, 8}), y = tensor({0, 1, 2, 0, 1, 2});
  optim::SGD optimizer(model.parameters(), 0.1);
  double first = 0, last = 0;
  for (int i = 0; i < 8; ++i) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    (i ? last : first) = loss.item<double>();
    loss.backward();
    optimizer.step();
  }
  EXPECT_LT(last, first);
  EXPECT_EQ(model.named_buffers().size(), 3u);
}

TEST(Images, bad_settings_are_errors) {
  EXPECT_THROW(nn::Conv2d(3, 4, {3}, {.groups = 2}), ValueError);
  EXPECT_THROW(nn::ConvTranspose1d(2, 2, {3}, {.padding = "same"}), ValueError);
  EXPECT_THROW(nn::BatchNorm2d(3)(ones({2, 3})), ValueError);
  EXPECT_THROW(nn::GroupNorm(2, 3), ValueError);
}

TEST(Images, functions_take_lists_and_words) {
  const Tensor x = ones({1, 2, 6, 5}), w = ones({4, 2, 3, 2});
  EXPECT_EQ(conv2d(x, w, {}, {1}, "same").sizes(), (Dims{1, 4, 6, 5}));
  EXPECT_EQ(conv2d(x, w, {}, {2, 1}, {1, 0}).sizes(), (Dims{1, 4, 3, 4}));
  EXPECT_EQ(max_pool2d(x, {2}).sizes(), (Dims{1, 2, 3, 2}));
  EXPECT_EQ(interpolate(x, {3, 7}, "bicubic").sizes(), (Dims{1, 2, 3, 7}));
  EXPECT_EQ(pad(x, {1, 2}).sizes(), (Dims{1, 2, 6, 8}));
}

}  // namespace
}  // namespace naru
