// One model on four devices, each with a part of the batch: the gradients are one device's.
#include <naru/naru.h>

#include <cstdio>
#include <memory>

using naru::Tensor;
namespace nn = naru::nn;

struct Net : nn::Module {
  std::shared_ptr<nn::Linear> first = register_module("first", nn::Linear(16, 32));
  std::shared_ptr<nn::Linear> last = register_module("last", nn::Linear(32, 1));
  Tensor forward(const Tensor& x) override { return (*last)((*first)(x).relu()); }
};

int main() {
  // Four devices on any machine, made of host memory and threads.
  naru::set_virtual_devices("cuda:4");
  const naru::Device home("cuda:0");
  naru::manual_seed(0);
  nn::DataParallel model([] { return std::make_shared<Net>(); });
  naru::optim::SGD optimizer(model.parameters(), 0.05);

  const Tensor x = naru::randn({10, 16}, home), y = x.sum({1}, true);  // 10 rows: 3, 3, 3 and 1
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    nn::functional::mse_loss(model(x), y).backward();
    if (step == 0) {
      const Tensor together = model.parameters()[0].grad().clone();
      optimizer.zero_grad();
      nn::functional::mse_loss(model.module()(x), y).backward();
      const bool same = naru::allclose(together, model.parameters()[0].grad(), 1e-5, 1e-6);
      std::printf("%zu devices; gradients as on one: %s\n", model.devices().size(), same ? "yes" : "no");
      if (!same) return 1;
    }
    optimizer.step();
  }
  std::printf("loss %.4f\n", nn::functional::mse_loss(model(x), y).item<double>());
}
