// Line 1: small operators from C++. Prints one JSON object per work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "naru/naru.h"

namespace {

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

}  // namespace

int main() {
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
