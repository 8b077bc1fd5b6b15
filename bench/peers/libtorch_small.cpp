// Line 1 as PyTorch's C++ library does it; run.py compiles it against the torch package of the peers' environment.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

template <class F>
void report(const char* work, F f) {
  using clock = std::chrono::steady_clock;
  const auto seconds = [&](int loops) {
    const auto start = clock::now();
    for (int i = 0; i < loops; ++i) f();
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  seconds(1000);
  const int loops = std::max(1, static_cast<int>(0.02 / (seconds(1000) / 1000)));
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) times.push_back(seconds(loops) / loops);
  std::sort(times.begin(), times.end());
  std::printf("{\"work\": \"%s\", \"seconds\": %.4g}\n", work, times[times.size() / 2]);
}

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
