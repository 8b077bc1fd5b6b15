// What optimizers that go parameter by parameter share.
#pragma once

#include "naru/ops.h"
#include "optim/checks.h"

namespace naru::optim {

// A parameter's gradient with its sign and, if `decay`, its weight decay.
template <class O>
Tensor gradient_of(const Tensor& p, const O& o, bool decay) {
  Tensor g = p.grad();
  if (o.maximize) g = -g;
  if constexpr (requires { o.weight_decay; })
    if (decay && o.weight_decay != 0) return g + p * o.weight_decay;
  return g;
}

}  // namespace naru::optim
