#include "overrides.h"

#include "function.h"

namespace naru::py {

bool overrides_watched = false;

namespace {

PyObject* handler = nullptr;  // naru.overrides._call: (function, args, kwargs) -> result, or NotImplemented where nobody takes it over

// Not a tensor, and of a class that has __torch_function__; or a list with one in it.
bool is_foreign(PyObject* o, bool look_inside = true) {
  PyTypeObject* const type = Py_TYPE(o);
  if (is_tensor(o) || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBool_Type ||
      type == &PySlice_Type || o == Py_None || o == Py_Ellipsis)
    return false;
  if (look_inside && (PyList_Check(o) || PyTuple_Check(o))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (is_foreign(PySequence_Fast_GET_ITEM(o, i), false)) return true;
    return false;
  }
  static PyObject* const name = PyUnicode_InternFromString("__torch_function__");
  return _PyType_Lookup(type, name) != nullptr;
}

PyObject* ask(PyObject* function, nb::object args, nb::object kwargs) {
  if (!handler) {
    nb::object found = nb::module_::import_("naru.overrides").attr("_call");
    if (!handler) handler = found.release().ptr();
  }
  nb::object result = nb::steal(check(PyObject_CallFunctionObjArgs(handler, function, args.ptr(), kwargs.ptr(), nullptr)));
  return result.ptr() == Py_NotImplemented ? nullptr : result.release().ptr();
}

}  // namespace

PyObject* taken_over(PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames, bool foreign_only) {
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  bool foreign = !foreign_only;
  for (Py_ssize_t i = 0; i < nargs + keywords && !foreign; ++i) foreign = is_foreign(args[i]);
  if (!foreign) return nullptr;
  nb::object tuple = nb::steal(check(PyTuple_New(nargs)));
  for (int i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(args[i]));
  nb::dict named;
  for (Py_ssize_t k = 0; k < keywords; ++k) check(PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]));
  return ask(function, std::move(tuple), std::move(named));
}

PyObject* taken_over(const char* method, std::initializer_list<PyObject*> args, bool foreign_only) {
  bool foreign = !foreign_only;
  for (PyObject* o : args) foreign = foreign || is_foreign(o);
  if (!foreign) return nullptr;
  nb::object function = nb::steal(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), method)));
  nb::object tuple = nb::steal(check(PyTuple_New(static_cast<Py_ssize_t>(args.size()))));
  Py_ssize_t i = 0;
  for (PyObject* o : args) PyTuple_SET_ITEM(tuple.ptr(), i++, Py_NewRef(o));
  return ask(function.ptr(), std::move(tuple), nb::dict());
}

void define_overrides() {
  def(kFunction, "_watch_overrides", "on", "Whether modes and subclasses of Tensor are asked before each call.",
      [](bool on) { overrides_watched = on; });
}

}  // namespace naru::py
