// Fits a polynomial of degree 4 to points of a curve.
#include <naru/naru.h>

#include <cstdio>

using naru::Tensor;

// Columns x, x², x³, x⁴.
Tensor features(const Tensor& x) { return naru::cat({x, x.pow(2), x.pow(3), x.pow(4)}, 1); }

int main() {
  naru::manual_seed(0);
  const Tensor x = naru::linspace(-1, 1, 200).unsqueeze(1);
  const Tensor y = 0.5 + 2 * x - 3 * x.pow(2) + x.pow(4) + 0.01 * naru::randn({200, 1});

  naru::nn::Linear model(4, 1);
  naru::optim::Adam optimizer(model.parameters(), 0.05);
  for (int step = 0; step <= 1000; ++step) {
    const Tensor loss = naru::nn::functional::mse_loss(model(features(x)), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 250 == 0) std::printf("step %4d  loss %.5f\n", step, loss.item<double>());
  }
  const auto w = model.weight.to_doubles();
  std::printf("y = %.2f + %.2f x + %.2f x^2 + %.2f x^3 + %.2f x^4\n", model.bias.item<double>(), w[0], w[1], w[2], w[3]);
}
