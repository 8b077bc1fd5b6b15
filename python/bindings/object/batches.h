// Calls with tensors of a vmap (naru.func): C++'s rules, and Python's for operators that C++ has none for.
#pragma once

#include "object/object.h"

namespace naru::py {

// True while a vmap is under way in some thread; overrides_watched is true then, too.
extern bool batches_watched;

// Whether one of the arguments is a tensor of a vmap, itself or in a list.
bool meets_batch(PyObject* const* args, Py_ssize_t count);
// Lets Python's rule for the name handle a call with tensors of a vmap. Returns a new reference; null without an error if C++ is to handle it.
PyObject* by_python_rule(const char* name, PyObject* function, PyObject* args, PyObject* kwargs);
// What becomes of a call that C++ refused with the Python error that is set: the same for each entry, or the error.
PyObject* after_batching_error(PyObject* function, PyObject* args, PyObject* kwargs);
void define_batches_of_vmap(nb::module_& m);

}  // namespace naru::py
