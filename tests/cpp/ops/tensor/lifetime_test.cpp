// Work in handlers that run when a thread or the process ends.
#include <cstdlib>
#include <thread>

#include "naru/device/virtual.h"
#include "naru/nn.h"
#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

double some_work() {
  nn::Linear layer(4, 4);
  layer(ones({2, 4})).sum().backward();
  const Tensor products = randn({40, 40}).matmul(randn({40, 40})).t().contiguous();
  return (tensor({1, 2, 3}) * 2 + products.sum() * 0 + layer.weight.grad().sum() * 0).sum().item<double>();
}

// atexit handlers run after the main thread's thread-locals are destroyed; those registered first run after all statics are.
void say_work() {
  const double found = some_work();
  const VirtualDevices devices(DeviceType::Cuda, {});
  const double on_device = (ones({100}, Device("cuda")) + 1).sum().item<double>();
  std::fprintf(stderr, "at exit %g %g %s\n", found, on_device, tensor({1}).str().c_str());
}

TEST(Lifetime, WorkInHandlersOfTheProcessesEndIsDone) {
  EXPECT_EXIT(
      {
        std::atexit(say_work);
        some_work();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "at exit 12 200 tensor\\(\\[1\\]\\)");
}

struct WorksAtTheEnd {
  double* found;
  explicit WorksAtTheEnd(double* f) : found(f) {}
  ~WorksAtTheEnd() { *found = some_work(); }
};

TEST(Lifetime, WorkInDestructorsOfThreadLocalsIsDone) {
  double before = 0, kept = 0;
  std::thread([&] {
    thread_local const WorksAtTheEnd end(&before);  // constructed before the library's thread-locals, so destroyed after them
    some_work();
    thread_local Tensor left = randn({3}) * 2;
    kept = left.numel() + (end.found ? 0 : 1);
  }).join();
  EXPECT_EQ(before, 12);
  EXPECT_EQ(kept, 3);
}

}  // namespace
}  // namespace naru
