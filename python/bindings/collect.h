// What Python's garbage collector is shown of C++: the Python objects (hooks, functions' contexts) that a tensor or a node owns alone, however
// far down its history. What others own too is taken to be in use.
#pragma once

#include "autograd/node.h"
#include "object.h"

namespace naru::py {

int visit_owned(const Tensor& t, visitproc visit, void* arg);
int visit_owned(const autograd::Node& node, visitproc visit, void* arg);
// Lets go of them.
void clear_owned(const Tensor& t);
void clear_owned(autograd::Node& node);

}  // namespace naru::py
