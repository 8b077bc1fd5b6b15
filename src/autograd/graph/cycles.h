// Reference cycles through C++ objects only, which Python's garbage collector can't see.
#pragma once

#include "naru/tensor.h"

namespace naru::autograd {

// Call when the program releases a tensor whose last known owner is `t`. If only the history of its own grad keeps the tensor alive, as
// after backward(create_graph=True), frees the grad and thereby the whole cycle. In all other cases it costs one pointer check.
void free_isolated(const Tensor& t);

}  // namespace naru::autograd
