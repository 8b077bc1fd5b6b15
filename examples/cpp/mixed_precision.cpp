// Products in 16 bits, sums and losses in 32, and losses scaled so that small gradients survive.
#include <naru/naru.h>

#include <cstdio>
#include <iostream>
#include <string_view>

using naru::Tensor;
namespace nn = naru::nn;

int main() {
  naru::manual_seed(0);
  const naru::Device device = naru::best_device();
  const Tensor x = naru::randn({256, 32}, device), y = (x * x).mean({1}, true);

  nn::Sequential model{nn::Linear(32, 64), nn::ReLU(), nn::Linear(64, 1)};
  model.to(device);
  naru::optim::Adam optimizer(model.parameters(), 0.01);
  naru::GradScaler scaler;
  Tensor loss;
  std::string_view type;
  for (int step = 0; step < 100; ++step) {
    {
      const naru::Autocast block(device.type);
      const Tensor output = model(x);
      type = naru::name_of(output.dtype());
      loss = nn::functional::mse_loss(output.to(naru::DType::F32), y);
    }
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    if (!scaler.step(optimizer)) std::printf("step %d was left out: %s\n", step, scaler.why().c_str());
    scaler.update();
  }
  std::cout << "the model computed in " << type << ", its parameters are " << naru::name_of(model.parameters()[0].dtype()) << ", loss "
            << loss.item<double>() << '\n';
}
