// C++ objects for Python's garbage collector: the Python objects (hooks, functions' contexts) that only this tensor or node owns, at any
// depth of its history. Objects with another owner count as in use.
#pragma once

#include "autograd/graph/node.h"
#include "object/object.h"

namespace naru::py {

int visit_owned(const Tensor& t, visitproc visit, void* arg);
int visit_owned(const autograd::Node& node, visitproc visit, void* arg);
// Releases them.
void clear_owned(const Tensor& t);
void clear_owned(autograd::Node& node);

}  // namespace naru::py
