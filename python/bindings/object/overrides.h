// `__torch_function__`: dispatch of calls to user-defined classes and modes.
#pragma once

#include <functional>

#include "object/object.h"

namespace naru::py {

// True if a mode or a subclass of Tensor might handle calls whose arguments are otherwise valid.
extern bool overrides_watched;

// Lets the class of an argument, or a mode, handle a call of `function`. Returns a new reference; null without an error if none handles it.
// foreign_only: modes and subclasses of Tensor were tried already.
PyObject* dispatch_torch_function(PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames, bool foreign_only);
// The same for a slot or method of Tensor, by name.
PyObject* dispatch_torch_function(const char* method, std::initializer_list<PyObject*> args, bool foreign_only);
// Calls a function with tensors of a vmap among its arguments: by Python's rule for its name, or by `call`, which calls it as it is.
PyObject* call_with_batch(PyObject* function, const char* name, PyObject* const* args, int nargs, PyObject* kwnames,
                          const std::function<PyObject*()>& call);
// Whether calls are also watched for tensors of a vmap.
void watch_batches(bool on);
void define_overrides();

}  // namespace naru::py
