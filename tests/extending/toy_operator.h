// Operators and a module that a user of the library might add.
#pragma once

#include "naru/nn.h"
#include "naru/ops.h"

namespace naru::toy {

// scale * x * x, of x's floating-point dtype and shape. Throws TypeError for other dtypes. Gradients flow to x.
Tensor scaled_square(const Tensor& x, double scale);

// x -> scaled_square(weight * x + bias), with weight and bias of `width` elements.
class Bump : public nn::Module {
 public:
  explicit Bump(int64_t width);
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight_, bias_;
};

}  // namespace naru::toy
