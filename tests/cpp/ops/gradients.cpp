#include "ops/gradients.h"

#include <cmath>

namespace naru::test {

Tensor numbers(const Dims& sizes, double low, double high, uint64_t seed) {
  Generator generator(seed);
  Tensor t = empty(sizes, Options(DType::F64));
  uniform_(t, low, high, &generator);
  return t;
}

namespace {

// The sum of the result weighted by fixed values, so that the gradient depends on every element.
Tensor weighted(const Tensor& y, uint64_t seed) { return sum(y * numbers(y.sizes(), 0.5, 1.5, seed)); }

std::vector<Tensor> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> all;
  for (const Tensor& t : inputs) all.push_back(t.detach().clone().requires_grad_());
  return all;
}

void compare(const Function& scalar, const std::vector<Tensor>& inputs, const char* order) {
  const std::vector<Tensor> at = leaves(inputs);
  const std::vector<Tensor> grads = grad({scalar(at)}, at, {}, false, false, true);
  constexpr double h = 1e-5;
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<double> analytic(static_cast<size_t>(inputs[k].numel()), 0.0);
    if (grads[k].defined()) {
      ASSERT_EQ(grads[k].sizes(), inputs[k].sizes());
      analytic = grads[k].to_doubles();
    }
    for (int64_t i = 0; i < inputs[k].numel(); ++i) {
      double side[2];
      for (int s = 0; s < 2; ++s) {
        std::vector<Tensor> moved = inputs;
        moved[k] = inputs[k].clone();
        std::vector<double> values = moved[k].to_doubles();
        values[static_cast<size_t>(i)] += s ? h : -h;
        moved[k] = from_data(values.data(), inputs[k].sizes(), DType::F64);
        moved = leaves(moved);
        side[s] = scalar(moved).item<double>();
      }
      const double numeric = (side[1] - side[0]) / (2 * h), got = analytic[static_cast<size_t>(i)];
      EXPECT_NEAR(got, numeric, 1e-6 * std::max(1.0, std::abs(numeric))) << order << " gradient of input " << k << ", element " << i;
    }
  }
}

}  // namespace

void expect_gradients(const Function& f, const std::vector<Tensor>& inputs, bool second) {
  const Function scalar = [&](const std::vector<Tensor>& x) { return weighted(f(x), 77); };
  compare(scalar, inputs, "first");
  if (!second) return;
  const Function gradient = [&](const std::vector<Tensor>& x) {
    const std::vector<Tensor> g = grad({scalar(x)}, x, {}, true, true, true);
    Tensor total = zeros({}, Options(DType::F64));
    for (size_t k = 0; k < g.size(); ++k)
      if (g[k].defined()) total = total + weighted(g[k], 100 + k);
    // Connected to every input, even where f is linear in it.
    for (const Tensor& t : x) total = total + sum(t) * 0.0;
    return total;
  };
  compare(gradient, inputs, "second");
}

}  // namespace naru::test
