// Exits with 0 if an installed naru computes, differentiates and reports errors.
#include <naru/naru.h>

#include <cstdio>

int main() {
  const naru::Tensor x = naru::tensor({1.0, 2.0, 3.0}).requires_grad_();
  (x * x).sum().backward();
  if (x.grad().sum().item<double>() != 12.0) {
    std::puts("wrong gradient");
    return 1;
  }
  try {
    naru::matmul(naru::ones({2, 3}), naru::ones({2, 3}));
  } catch (const naru::Error& error) {
    std::printf("as it should: %s\n", error.what());
    return 0;
  }
  std::puts("a matmul of wrong shapes threw nothing");
  return 1;
}
