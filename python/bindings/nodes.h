// Nodes of the backward graph as Python sees them, and what calls Python from backward.
#pragma once

#include "object.h"
#include "ops/history.h"

namespace naru::py {

// The Python object of a node, of a class that has the node's name; None for null.
nb::object node_object(const Ref<autograd::Node>& node);
// The node that a Python object stands for; null if it is none.
Ref<autograd::Node> node_from(PyObject* o);
// The handle of a hook.
nb::object hook_handle(autograd::HookPlace place);
// A callable's __name__, for errors.
std::string name_of_callable(PyObject* f);
// The gradients as a tuple, None for undefined ones.
nb::object tuple_of(const std::vector<Tensor>& grads);
// The attributes `_saved_NAME` and `_raw_saved_NAME`: false where the node has none; null with an error set where the tensor can't be had.
bool saved_attribute(const Ref<autograd::Node>& node, std::string_view name, PyObject** found);
void define_nodes(nb::module_& m);

}  // namespace naru::py
