// Helpers for operator tests: error texts, and gradients against central differences.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "naru/autograd.h"
#include "naru/ops.h"

namespace naru::testing {

using Doubles = std::vector<double>;

// A float64 vector that requires grad.
inline Tensor leaf(Doubles v) { return tensor(v, Options(DType::F64)).requires_grad_(); }
using Ints = std::vector<int64_t>;

// The text of the E that f throws; fails the test if f throws none.
template <class E, class F>
std::string text_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_starts(const std::string& text, const std::string& start) { EXPECT_EQ(text.substr(0, start.size()), start); }

// 0, 1, 2 ... as float64, with the given shape.
inline Tensor counted(const Dims& shape) { return arange(0, product(shape), 1, DType::F64).view(shape); }
inline Tensor ints(const Ints& values, const Dims& shape) { return tensor(values).view(shape); }
inline Tensor ints(const Ints& values) { return tensor(values); }
inline Tensor bools(const Ints& values, const Dims& shape) { return tensor(values).to(DType::Bool).view(shape); }

// Compares backward through f at x with central differences; each element of the result has a different weight.
inline void expect_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  const auto weighted = [&](const Tensor& x) {
    const Tensor y = f(x);
    return (y * (counted(y.sizes()) + 1.0)).sum();
  };
  Tensor x = at.detach().to(DType::F64, false, true).requires_grad_();
  weighted(x).backward();
  const Doubles found = x.grad().to_doubles();
  const NoGrad no_grad;
  constexpr double kStep = 1e-3;
  for (int64_t i = 0; i < x.numel(); ++i) {
    Tensor up = at.detach().to(DType::F64, false, true).contiguous(), down = up.clone();
    up.view({-1})[i].add_(kStep);
    down.view({-1})[i].sub_(kStep);
    const double wanted = (weighted(up).item<double>() - weighted(down).item<double>()) / (2 * kStep);
    EXPECT_NEAR(found[static_cast<size_t>(i)], wanted, 1e-6 * (1 + std::abs(wanted))) << "element " << i;
  }
}

}  // namespace naru::testing
