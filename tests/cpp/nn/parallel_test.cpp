// DataParallel on virtual devices.
#include "naru/nn/parallel.h"

#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/device/devices.h"
#include "naru/device/virtual.h"
#include "naru/error.h"
#include "naru/ops.h"
#include "naru/optim.h"
#include "naru/random.h"

namespace naru::nn {
namespace {

VirtualOptions four() {
  VirtualOptions o;
  o.count = 4;
  return o;
}

struct Parallel : ::testing::Test {
  VirtualDevices devices{DeviceType::Cuda, four()};
  static std::shared_ptr<Module> make() { return std::make_shared<Sequential>(Linear(5, 8), ReLU(), Linear(8, 2)); }
};

TEST_F(Parallel, AnyBatchSizeGivesTheResultsAndGradientsOfOneDevice) {
  manual_seed(1);
  DataParallel model(make);
  for (const int64_t batch : {1, 3, 4, 5, 9, 64}) {
    const Tensor x = randn({batch, 5}).to(Device("cuda:0"));
    model.zero_grad();
    const Tensor expected = model.module()(x);
    (expected * expected).sum().backward();
    std::vector<Tensor> grads;
    for (const Tensor& p : model.parameters()) grads.push_back(p.grad().clone());
    model.zero_grad();
    const Tensor got = model(x);
    EXPECT_EQ(got.device(), Device("cuda:0"));
    EXPECT_TRUE(allclose(got, expected, 1e-5, 1e-6));
    (got * got).sum().backward();
    for (size_t i = 0; i < grads.size(); ++i) EXPECT_TRUE(allclose(model.parameters()[i].grad(), grads[i], 1e-4, 1e-5)) << batch;
  }
}

TEST_F(Parallel, NothingIsCopiedAgainThatHasNotChanged) {
  DataParallel model(make);
  const Tensor x = randn({8, 5}).to(Device("cuda:0"));
  model(x);
  EXPECT_EQ(model.copies(), 12u);
  model(x).sum().backward();
  {
    const NoGrad guard;
    model(x);
  }
  EXPECT_EQ(model.copies(), 12u);
  {
    const NoGrad guard;
    model.parameters()[1].add_(1);
  }
  EXPECT_TRUE(allclose(model(x), model.module()(x), 1e-5, 1e-6));
  EXPECT_EQ(model.copies(), 15u);
}

TEST_F(Parallel, AnErrorKeepsItsKindAndNamesTheReplica) {
  DataParallel model(make);
  try {
    model(randn({8, 4}).to(Device("cuda:0")));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("in replica 0 on device cuda:0"), std::string::npos) << e.what();
  }
  model.module().to(Device("cuda:1"));
  EXPECT_THROW(model(randn({8, 5}).to(Device("cuda:0"))), RuntimeError);
}

TEST_F(Parallel, ModulesOfDifferentStructureAreRefused) {
  int made = 0;
  EXPECT_THROW(DataParallel([&] { return std::make_shared<Linear>(3, ++made); }), RuntimeError);
}

TEST(ParallelWithoutDevices, TheModuleRunsAsItIs) {
  set_virtual_devices("");
  DataParallel model(Parallel::make);
  EXPECT_EQ(model(randn({3, 5})).sizes(), (Dims{3, 2}));
}

}  // namespace
}  // namespace naru::nn
