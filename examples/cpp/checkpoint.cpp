// Trains 50 steps at each start and goes on where it stopped, as if it had never stopped. PyTorch and naru in Python read the same file.
//
//   checkpoint [FILE]
#include <naru/naru.h>

#include <cstdio>
#include <filesystem>
#include <string>

using naru::Tensor;
namespace nn = naru::nn;

int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "checkpoint.pt";
  naru::manual_seed(0);
  const Tensor x = naru::randn({64, 8}), y = x.sum({1}, true).sin();
  nn::Sequential model{nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 1)};
  naru::optim::Adam optimizer(model.parameters(), 0.01);
  int64_t step = 0;

  if (std::filesystem::exists(file)) {
    const naru::Value saved = naru::load(file);
    naru::load_state(model, saved["model"]);
    naru::load_state(optimizer, saved["optimizer"]);
    step = saved["step"].to_int();
    std::printf("going on at step %lld\n", static_cast<long long>(step));
  }
  Tensor loss;
  for (const int64_t end = step + 50; step < end; ++step) {
    loss = nn::functional::mse_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  naru::save(naru::Value::Dict{{"model", naru::state_of(model)}, {"optimizer", naru::state_of(optimizer)}, {"step", step}}, file);
  std::printf("step %lld, loss %.9g\n", static_cast<long long>(step), loss.item<double>());
}
