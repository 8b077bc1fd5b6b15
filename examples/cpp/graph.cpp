// Records a training step once and replays it: what the step costs beside its arithmetic is gone.
#include <naru/naru.h>

#include <chrono>
#include <cstdio>

using naru::Tensor;
namespace nn = naru::nn;

int main() {
  naru::manual_seed(0);
  nn::Sequential model{nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 1)};
  naru::optim::SGD optimizer(model.parameters(), 0.1);
  Tensor x = naru::empty({4, 2}), y = naru::empty({4, 1}), loss;  // a graph reads and writes the tensors it was recorded with

  const auto step = [&] {
    optimizer.zero_grad(false);
    loss = nn::functional::mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
  };
  x.copy_(naru::tensor({{0., 0.}, {0., 1.}, {1., 0.}, {1., 1.}}));
  y.copy_(naru::tensor({{0.}, {1.}, {1.}, {0.}}));
  step();  // gradients and state get their memory outside

  const auto time = [](auto&& f) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) f();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 2000;
  };
  const double eager = time(step);
  naru::Graph graph;
  graph.capture(step, naru::Device("cpu"));
  const double replayed = time([&] { graph.replay(); });

  std::printf("a step of %zu instructions: %.1f us, replayed %.1f us\n", graph.size(), eager, replayed);
  std::printf("loss %.4f\n", loss.item<double>());
}
