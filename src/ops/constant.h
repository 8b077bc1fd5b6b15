// Results that do not change with what they were made from.
#pragma once

#include "ops/history.h"

namespace naru::autograd {

// Records `out` as such a result: the gradients of the inputs are zeros, as PyTorch has them.
Tensor record_constant(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs);

}  // namespace naru::autograd
