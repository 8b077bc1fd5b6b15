// Results whose derivatives are zero.
#pragma once

#include "autograd/history/history.h"

namespace naru::autograd {

// Records `out` as such a result: the inputs get gradients of zeros, as in PyTorch.
Tensor record_constant(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs);

}  // namespace naru::autograd
