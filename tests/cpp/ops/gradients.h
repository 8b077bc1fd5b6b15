// Checks gradients against finite differences, in float64.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "naru/autograd.h"
#include "naru/ops.h"

namespace naru::test {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// float64 values in [low, high), reproducible by seed.
Tensor numbers(const Dims& sizes, double low = -1, double high = 1, uint64_t seed = 1);

// Checks the gradients of f at `inputs` (float64): each must agree with the central difference within a relative 1e-6. With `second`, also checks
// second derivatives.
void expect_gradients(const Function& f, const std::vector<Tensor>& inputs, bool second = true);

// Rethrows what f throws; the text must begin with `opening`.
template <class E, class F>
void expect_error(F f, const std::string& opening) {
  try {
    f();
  } catch (const E& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, opening.size()), opening);
    return;
  }
  ADD_FAILURE() << "no error; wanted: " << opening;
}

}  // namespace naru::test
