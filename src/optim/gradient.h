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

template <class O>
void check_betas(const O& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.eps >= 0, "epsilon value", o.eps);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta parameter at index 0", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta parameter at index 1", o.beta2);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
}

}  // namespace naru::optim
