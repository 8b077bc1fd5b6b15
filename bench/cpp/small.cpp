// Lines 1, 10 and 13 from C++: small operators, products and training steps. `small LINE` prints one JSON object per
// work.
#include <cstdlib>
#include <string>

#include "naru/naru.h"
#include "report.h"

namespace {

void operators() {
  const naru::Tensor x = naru::rand({1}), y = naru::rand({1});
  naru::Tensor r = naru::rand({1});
  r.requires_grad_();
  report("add n=1, C++", [&] { const naru::Tensor z = x + y; });
  report("add n=1 with grad, C++", [&] { const naru::Tensor z = r + y; });
  report("(x*y).sum().backward() n=1, C++", [&] {
    (r * y).sum().backward();
    r.set_grad({});
  });
}

void products() {
  for (int64_t n : {8, 64}) {
    const naru::Tensor a = naru::randn({n, n}), b = naru::randn({n, n});
    report(n == 8 ? "matmul fp32 8, C++" : "matmul fp32 64, C++", [&] { const naru::Tensor c = naru::matmul(a, b); });
  }
}

template <class Optimizer, class OptimizerOptions>
void training(const char* work, OptimizerOptions options) {
  namespace nn = naru::nn;
  const naru::Tensor x = naru::randn({4, 2}), y = naru::randn({4, 1});
  nn::Sequential model{nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 1)};
  const auto step = [&](Optimizer& optimizer) {
    optimizer.zero_grad();
    naru::mse_loss(model(x), y).backward();
    optimizer.step();
  };
  Optimizer optimizer(model.parameters(), options);
  report(work, [&] { step(optimizer); });
  if constexpr (requires { options.capturable; }) options.capturable = true;
  Optimizer recorded(model.parameters(), options);
  step(recorded);
  naru::Graph graph;
  graph.capture([&] { step(recorded); }, "cpu");
  report((std::string(work) + ", replayed").c_str(), [&] { graph.replay(); });
}

}  // namespace

int main(int argc, char** argv) {
  switch (argc > 1 ? std::atoi(argv[1]) : 1) {
    case 1:
      operators();
      break;
    case 10:
      products();
      break;
    case 13:
      training<naru::optim::SGD>("MLP 2-16-1 training step, batch 4, SGD, C++", naru::SgdOptions{.lr = 1e-6});
      training<naru::optim::Adam>("MLP 2-16-1 training step, batch 4, Adam, C++", naru::AdamOptions{.lr = 1e-6});
      break;
    default:
      break;
  }
}
