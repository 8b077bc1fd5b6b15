// User kernels, from C++. tests/python/kernels/test_kernels.py tests them on every kind of device.
#include "naru/kernel.h"

#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/device/devices.h"
#include "naru/device/virtual.h"
#include "naru/error.h"
#include "naru/ops.h"

namespace naru {
namespace {

constexpr const char* kSource = R"(
kernel void vec_add(const float* a, const float* b, float* out) {
  int i = global_id(0);
  out[i] = a[i] + b[i];
}
kernel void square(const float* x, float scale, float* y) { int i = global_id(0); y[i] = scale * x[i] * x[i]; }
kernel void square_backward(const float* x, float scale, const float* grad_y, float* grad_x) {
  int i = global_id(0);
  grad_x[i] = 2 * scale * x[i] * grad_y[i];
}
)";

struct Kernels : ::testing::TestWithParam<const char*> {
  Kernels() { set_virtual_devices("cuda:1"); }
  ~Kernels() override { set_virtual_devices(""); }
  Options options() const { return {DType::F32, Device(GetParam())}; }
};

TEST_P(Kernels, RunOverAGridOrOverGroups) {
  const Kernel add(kSource, "vec_add");
  const Tensor a = arange(0, 1000, 1, options()), b = full({1000}, 2, options());
  Tensor grid = zeros({1000}, options()), groups = zeros({1000}, options());
  add({a, b, grid}, {.grid = {999}});
  add({a, b, groups}, {.blocks = {10}, .threads = {100}});
  EXPECT_TRUE(equal(groups, a + b));
  EXPECT_EQ(grid[{999}].item<float>(), 0);
  EXPECT_EQ(grid.sum().item<float>(), (a + b).sum().item<float>() - 1001);
}

TEST_P(Kernels, LetTheItemsOfAGroupMeet) {
  const Kernel sums(R"(
kernel void sums(const float* x, float* out) {
  shared float part[64];
  int i = local_id(0);
  part[i] = x[global_id(0)];
  for (int step = 32; step > 0; step /= 2) {
    barrier();
    if (i < step && i + step < local_size(0)) part[i] += part[i + step];
  }
  if (i == 0) out[group_id(0)] = part[0];
})",
                    "sums");
  const Tensor x = arange(0, 1000, 1, options());
  Tensor out = zeros({16}, options());
  sums({x, out}, {.grid = {1000}, .threads = {64}});
  EXPECT_EQ(out.sum().item<float>(), 499500);
  EXPECT_EQ(out[{15}].item<float>(), 960 * 40 + 780);
}

TEST_P(Kernels, AreDifferentiableByAKernelOrAFunction) {
  for (const bool function : {false, true}) {
    Kernel square(kSource, "square");
    if (function)
      square.set_backward([](const KernelContext& c) {
        return std::vector<Tensor>{c.grads[0] * *c.argument("x").tensor() * (2 * c.argument("scale").number().to_double())};
      });
    else
      square.set_backward("square_backward");
    const Tensor x = arange(0, 4, 1, options()).requires_grad_();
    Tensor y = zeros({4}, options());
    square({x, 3.0, y}, {.grid = {4}});
    y.sum().backward();
    EXPECT_TRUE(equal(x.grad(), arange(0, 4, 1, options()) * 6)) << function;
  }
}

TEST_P(Kernels, NameTheParameterThatAnArgumentDoesNotFit) {
  const Kernel add(kSource, "vec_add");
  const Tensor a = ones({3}, options());
  try {
    add({a, 1.0, a}, {.grid = {3}});
    FAIL();
  } catch (const TypeError& e) {
    EXPECT_NE(std::string(e.what()).find("parameter 'b' (const float* b) wants a float32 tensor"), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Kernels, ::testing::Values("cpu", "cuda:0"),
                         [](const auto& p) { return std::string(p.param).substr(0, 3); });

TEST(KernelSources, SayWhatTheyAre) {
  const Kernel k(kSource, "square");
  EXPECT_EQ(k.signature(), "kernel void square(const float* x, float scale, float* y)");
  EXPECT_EQ(k.inputs(), std::vector<std::string>{"x"});
  EXPECT_EQ(k.outputs(), std::vector<std::string>{"y"});
  EXPECT_THROW(Kernel(kSource, "cube"), ValueError);
}

}  // namespace
}  // namespace naru
