// Line 22: the same C++ program over naru and over libtorch, in libtorch's names. run.py compiles it a second time, against the torch package of the peers'
// environment, with LIBTORCH defined. One JSON object per work.
#ifdef LIBTORCH
#include <torch/torch.h>
#else
#include "naru/torch.h"
#endif

#include "report.h"

namespace {

void operators() {
  auto x = torch::rand({1}), y = torch::rand({1}), m = torch::rand({8, 8}), k = torch::rand({1000});
  report("add, n = 1", [&] { auto z = x + y; });
  report("add_, n = 1", [&] { x.add_(y); });
  report("item", [&] {
    volatile float v = y.item<float>();
    static_cast<void>(v);
  });
  report("empty", [&] { auto z = torch::empty({8}); });
  report("select", [&] { auto z = m.select(0, 3); });
  report("x * 2 + 1, n = 1000", [&] {
    volatile float v = (k * 2 + 1)[0].item<float>();
    static_cast<void>(v);
  });
  auto large = torch::rand({1 << 20});
  report("gelu, 1 M", [&] {
    volatile float v = torch::gelu(large)[0].item<float>();
    static_cast<void>(v);
  });
  report("sum, 1 M", [&] {
    volatile float v = large.sum().item<float>();
    static_cast<void>(v);
  });
  for (const int64_t n : {8, 64, 256}) {
    auto a = torch::rand({n, n}), b = torch::rand({n, n});
    report(n == 8 ? "product, 8" : n == 64 ? "product, 64" : "product, 256", [&] { auto c = torch::matmul(a, b); });
  }
}

void network() {
  torch::nn::Sequential model(torch::nn::Linear(2, 16), torch::nn::Tanh(), torch::nn::Linear(16, 1));
  auto x = torch::randn({4, 2}), y = torch::randn({4, 1});
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-6));
  report("MLP 2-16-1, forward", [&] {
    torch::NoGradGuard off;
    volatile float v = model->forward(x)[0][0].item<float>();
    static_cast<void>(v);
  });
  report("MLP 2-16-1, step with SGD", [&] {
    optimizer.zero_grad();
    torch::mse_loss(model->forward(x), y).backward();
    optimizer.step();
  });
}

}  // namespace

int main() {
#ifdef LIBTORCH
  torch::set_num_threads(1);
#endif
  operators();
  network();
}
