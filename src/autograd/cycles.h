// Reference cycles that C++ alone holds together.
#pragma once

#include "naru/tensor.h"

namespace naru::autograd {

// To be called when the program lets go of a tensor, whose last known owner is `t`: where nothing but its own grad's history keeps the tensor
// alive, as backward(create_graph=True) leaves it, the grad is freed, and so all of it. Costs a look at one pointer in all other cases.
void free_isolated(const Tensor& t);

}  // namespace naru::autograd
