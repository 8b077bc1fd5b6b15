// Checks of optimizer settings.
#pragma once

#include "naru/error.h"

namespace naru::optim {

inline void require(bool good, const char* what, double got) {
  if (!good) throw ValueError("Invalid {}: {}", what, got);
}

// For Adam and its variants.
template <class O>
void check_betas(const O& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.eps >= 0, "epsilon value", o.eps);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta parameter at index 0", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta parameter at index 1", o.beta2);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
}

}  // namespace naru::optim
