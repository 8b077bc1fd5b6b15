// out=: what the tensor that a result is written to must be, and how it becomes so, by the functions' records.
#pragma once

#include <string_view>

#include "core/operators.h"
#include "object/object.h"
#include "object/overlap.h"

namespace naru::py {

using operators::OutRule;

// Before the call: the slots of dtype and device (or null) take out's, where the rule says so. Throws RuntimeError where dtype= says otherwise.
void follow_out(const char* function, OutRule rule, const Tensor& out, PyObject** dtype, PyObject** device);

// out takes the shape (with a warning, unless it was empty) and the elements of result. Throws RuntimeError where its dtype or device is not
// as the rule wants it, where it needs a gradient, where several of its elements are one place in memory, or where it shares memory with the
// arguments as it may not.
void write_out(const char* function, OutRule rule, const Tensor& out, const Tensor& result, Sharing sharing = Sharing::Any,
               std::span<PyObject* const> arguments = {});

// What a function is given whose result is written to `self`: a copy, where backward may look at it; self itself (nothing) where that will do.
Tensor to_be_read(const Tensor& self, bool other_requires_grad = false);
nb::object copy_to_be_read(PyObject* self, std::span<PyObject* const> others);
// Writes the result to self, which is returned. RuntimeError for another shape, or a type that self can't take.
PyObject* into_self(PyObject* self, nb::object result);

}  // namespace naru::py
