#include "toy_operator.h"

#include "autograd/history/history.h"
#include "naru/error.h"
#include "ops/tensor/common.h"

namespace naru::toy {

Tensor scaled_square(const Tensor& x, double scale) {
  // 1. Check, and throw at the caller's line.
  ops::require_defined(x, "scaled_square", "x");
  if (!is_floating(x.dtype()))
    throw TypeError("scaled_square: wanted a floating-point tensor, got {}; convert it with .to(...)", name_of(x.dtype()));
  // 2. Compute: operators of the elementwise table, in any number; they fuse.
  const Tensor square = ops::apply(ir::op::mul, {{&x, {}, x.dtype()}, {&x, {}, x.dtype()}}, x.dtype(), "scaled_square");
  const Tensor out = ops::apply(ir::op::mul, {{&square, {}, x.dtype()}, {nullptr, scale, x.dtype()}}, x.dtype(), "scaled_square");
  // 3. Leave a node for backward: its formula uses public operators, so that gradients have gradients.
  return autograd::record(out, "ScaledSquareBackward0", {&x}, {&x}, [scale](std::vector<Tensor>& g, std::vector<Tensor>& saved) {
    return std::vector<Tensor>{g[0] * saved[0] * (2 * scale)};
  });
}

Bump::Bump(int64_t width) {
  weight_ = register_parameter("weight", ones({width}));
  bias_ = register_parameter("bias", zeros({width}));
}

Tensor Bump::forward(const Tensor& x) { return scaled_square(weight_ * x + bias_, 0.5); }

}  // namespace naru::toy
