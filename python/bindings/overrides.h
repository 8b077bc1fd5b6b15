// `__torch_function__`: calls that classes of the user's take over.
#pragma once

#include "object.h"

namespace naru::py {

// Whether any call might be taken over although its arguments are as they should be: by a mode, or a subclass of Tensor that says so.
extern bool overrides_watched;

// What the class of an argument, or a mode, makes of a call of `function`: a new reference; null, without an error, where nobody takes it over.
// foreign_only: modes and subclasses of Tensor have been asked already.
PyObject* taken_over(PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames, bool foreign_only);
// The same of a slot or method of Tensor, by its name.
PyObject* taken_over(const char* method, std::initializer_list<PyObject*> args, bool foreign_only);
void define_overrides();

}  // namespace naru::py
