// Python objects for autograd nodes, and helpers that call Python from backward.
#pragma once

#include "autograd/history/history.h"
#include "object/object.h"

namespace naru::py {

// The node's Python object, whose class has the node's name; None for null.
nb::object node_object(const Ref<autograd::Node>& node);
// The node of a Python object; null if the object is not a node.
Ref<autograd::Node> node_from(PyObject* o);
// The Python handle of a hook.
nb::object hook_handle(autograd::HookPlace place);
// A callable's __name__, for errors.
std::string name_of_callable(PyObject* f);
// The gradients as a tuple, with None for undefined ones.
nb::object tuple_of(const std::vector<Tensor>& grads);
// Looks up the attributes `_saved_NAME` and `_raw_saved_NAME`. Returns false if the node has none of that name; sets *found to null, with a
// Python error, if the tensor is not available.
bool saved_attribute(const Ref<autograd::Node>& node, std::string_view name, PyObject** found);
void define_nodes(nb::module_& m);

}  // namespace naru::py
