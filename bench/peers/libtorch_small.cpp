// Line 1 as PyTorch's C++ library does it; run.py compiles it against the torch package of the peers' environment.
#include <torch/torch.h>

#include "../cpp/report.h"

int main() {
  torch::set_num_threads(1);
  const auto x = torch::rand({1}), y = torch::rand({1});
  auto r = torch::rand({1}, torch::requires_grad());
  report("add n=1, C++", [&] { auto z = x + y; });
  report("add n=1 with grad, C++", [&] { auto z = r + y; });
  report("(x*y).sum().backward() n=1, C++", [&] {
    (r * y).sum().backward();
    r.mutable_grad() = torch::Tensor();
  });
}
