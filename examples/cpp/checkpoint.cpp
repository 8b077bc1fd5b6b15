// Stops in the middle of training and goes on in another process (here: with objects made anew). The loss goes on as if nothing had happened.
#include <naru/naru.h>

#include <cstdio>
#include <string>

using naru::Tensor;
namespace nn = naru::nn;

struct Training {
  nn::Sequential model{nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 1)};
  naru::optim::Adam optimizer{model.parameters(), 0.01};

  double steps(const Tensor& x, const Tensor& y, int count) {
    Tensor loss;
    for (int i = 0; i < count; ++i) {
      loss = nn::functional::mse_loss(model(x), y);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    return loss.item<double>();
  }
};

int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "checkpoint";
  naru::manual_seed(0);
  const Tensor x = naru::randn({64, 8}), y = x.sum({1}, true).sin();

  Training whole;
  whole.steps(x, y, 50);
  naru::save_safetensors(file + ".model", {whole.model.state_dict(), {{"step", "50"}}});
  naru::save_safetensors(file + ".optimizer", {whole.optimizer.state_dict(), {}});

  Training later;
  naru::SafeTensors saved = naru::load_safetensors(file + ".model");
  later.model.load_state_dict(saved.tensors);
  later.optimizer.load_state_dict(naru::load_safetensors(file + ".optimizer").tensors);
  std::printf("from step %s\n", saved.metadata["step"].c_str());

  const double expected = whole.steps(x, y, 50), loss = later.steps(x, y, 50);
  std::printf("loss %.6f without a stop, %.6f with one\n", expected, loss);
  return loss == expected ? 0 : 1;
}
