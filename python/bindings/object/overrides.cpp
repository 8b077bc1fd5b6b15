#include "object/overrides.h"

#include <algorithm>
#include <span>

#include "object/batches.h"
#include "object/function.h"

namespace naru::py {

bool overrides_watched = false;

namespace {

PyObject* handler = nullptr;   // naru.overrides._call: (function, args, kwargs) -> result, or NotImplemented if none handles the call
bool classes_watched = false;  // a mode or a subclass is
bool modes_watched = false;    // a mode may handle any call; a subclass of Tensor only calls with an instance among the arguments
PyObject* plain = nullptr;     // the __torch_function__ of Parameter and similar classes, which handle nothing

// True if the object's class has __torch_function__, or it is a list with such an object. Tensors count only with `subclasses`.
bool has_torch_function(PyObject* o, bool subclasses, bool look_inside = true) {
  PyTypeObject* const type = Py_TYPE(o);
  if (type == tensor_type || (!subclasses && is_tensor(o)) || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
      type == &PyBool_Type || type == &PySlice_Type || o == Py_None || o == Py_Ellipsis)
    return false;
  if (look_inside && (PyList_Check(o) || PyTuple_Check(o))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (has_torch_function(PySequence_Fast_GET_ITEM(o, i), subclasses, false)) return true;
    return false;
  }
  static PyObject* const name = PyUnicode_InternFromString("__torch_function__");
  PyObject* const found = _PyType_Lookup(type, name);
  return found && found != plain;
}

template <class Objects>
bool any_has_torch_function(const Objects& args, bool foreign_only) {
  if (!foreign_only && modes_watched) return true;
  return std::any_of(args.begin(), args.end(), [&](PyObject* o) { return has_torch_function(o, !foreign_only); });
}

PyObject* ask(PyObject* function, nb::object args, nb::object kwargs) {
  if (!handler) {
    nb::object found = nb::module_::import_("naru.overrides").attr("_call");
    if (!handler) handler = found.release().ptr();
  }
  nb::object result = nb::steal(check(PyObject_CallFunctionObjArgs(handler, function, args.ptr(), kwargs.ptr(), nullptr)));
  return result.ptr() == Py_NotImplemented ? nullptr : result.release().ptr();
}

nb::object tuple_of(PyObject* const* args, Py_ssize_t count) {
  nb::object tuple = nb::steal(check(PyTuple_New(count)));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(args[i]));
  return tuple;
}

}  // namespace

nb::dict keywords_of(PyObject* const* values, PyObject* kwnames) {
  nb::dict named;
  const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < count; ++k) check(PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(kwnames, k), values[k]));
  return named;
}

PyObject* dispatch_torch_function(PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames, bool foreign_only) {
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (!any_has_torch_function(std::span(args, static_cast<size_t>(nargs + keywords)), foreign_only)) return nullptr;
  return ask(function, tuple_of(args, nargs), keywords_of(args + nargs, kwnames));
}

PyObject* dispatch_torch_function(const char* method, std::initializer_list<PyObject*> args, bool foreign_only) {
  const auto count = static_cast<Py_ssize_t>(args.size());
  const bool asked = any_has_torch_function(args, foreign_only),
             batched = !foreign_only && batches_watched && meets_batch(args.begin(), count);
  if (!asked && !batched) return nullptr;
  const nb::object function = nb::steal(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), method)));
  const nb::object tuple = tuple_of(args.begin(), count);
  PyObject* result = asked ? ask(function.ptr(), tuple, nb::dict()) : nullptr;
  return result || !batched ? result : by_python_rule(method, function.ptr(), tuple.ptr(), nb::dict().ptr());
}

PyObject* call_with_batch(PyObject* function, const char* name, PyObject* const* args, int nargs, PyObject* kwnames,
                          const std::function<PyObject*()>& call) {
  const nb::object tuple = tuple_of(args, nargs);
  const nb::dict named = keywords_of(args + nargs, kwnames);
  if (named.contains("out") && !named["out"].is_none())  // a rule would give it the batch as a dimension
    throw RuntimeError(
        "Batching rule not implemented for aten::{0}.out; the fallback path doesn't work on out= or view ops. (vmap: call {0} without "
        "out=, and use its result)",
        name);
  if (PyObject* result = by_python_rule(name, function, tuple.ptr(), named.ptr())) return result;
  try {
    if (PyObject* result = call()) return result;
  } catch (...) {
    set_python_error(name);
  }
  return after_batching_error(function, tuple.ptr(), named.ptr());
}

void watch_batches(bool on) { overrides_watched = on || modes_watched || classes_watched; }

void define_overrides() {
  def(kFunction, "_watch_overrides", "modes, subclasses, unasked",
      "Whether modes, and subclasses of Tensor but those whose __torch_function__ is `unasked`, are asked before a call.",
      [](bool modes, bool subclasses, PyObject* unasked) {
        modes_watched = modes, classes_watched = modes || subclasses;
        watch_batches(batches_watched);
        Py_XSETREF(plain, Py_NewRef(unasked));
      });
}

}  // namespace naru::py
