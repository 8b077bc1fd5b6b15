// Methods of nn.Module that every layer of every call goes through: __call__ and __getattr__, without a Python frame of their own.
#include "object/tensor_object.h"

namespace naru::py {
namespace {

PyObject* hooked_name = nullptr;            // "_hooked", true in modules that have hooks
PyObject* forward_name = nullptr;           // "forward"
PyObject* call_with_hooks_name = nullptr;   // "_call_with_hooks"
PyObject* missing_name = nullptr;           // "_missing_attribute", which raises the error
std::array<PyObject*, 3> registry_names{};  // where parameters, buffers and modules are
PyObject* global_hooks = nullptr;           // the dict that is not empty if there are hooks of all modules

// Borrowed; null without an error if it is not there.
PyObject* found(PyObject* dict, PyObject* name) {
  PyObject* const value = dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : nullptr;
  if (!value && PyErr_Occurred()) throw nb::python_error();
  return value;
}

PyObject* module_getattr(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const nb::object state = nb::steal(check(PyObject_GenericGetDict(self, nullptr)));
    for (PyObject* registry : registry_names)
      if (PyObject* const value = found(found(state.ptr(), registry), name)) return Py_NewRef(value);
    return check(PyObject_CallMethodOneArg(self, missing_name, name));
  });
}

PyObject* module_call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const nb::object state = nb::steal(check(PyObject_GenericGetDict(self, nullptr)));
    PyObject* const hooked = found(state.ptr(), hooked_name);
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    if ((hooked && PyObject_IsTrue(hooked)) || PyDict_GET_SIZE(global_hooks) > 0) {
      const nb::object given = nb::steal(check(PyTuple_New(count))), by_name = nb::steal(check(PyDict_New()));
      for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(given.ptr(), i, Py_NewRef(args[i]));
      for (Py_ssize_t i = 0; i < named; ++i)
        if (PyDict_SetItem(by_name.ptr(), PyTuple_GET_ITEM(keywords, i), args[count + i]) < 0) throw nb::python_error();
      return check(PyObject_CallMethodObjArgs(self, call_with_hooks_name, given.ptr(), by_name.ptr(), nullptr));
    }
    SmallVector<PyObject*, 8> all;
    all.push_back(self);
    for (Py_ssize_t i = 0; i < count + named; ++i) all.push_back(args[i]);
    return check(PyObject_VectorcallMethod(forward_name, all.begin(), static_cast<size_t>(count) + 1, keywords));
  });
}

PyMethodDef call_method = {"__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_call)),
                           METH_FASTCALL | METH_KEYWORDS, "__call__($self, /, *args, **kwargs)\n--\n\nRuns the hooks and forward()."};
PyMethodDef getattr_method = {"__getattr__", module_getattr, METH_O,
                              "__getattr__($self, name, /)\n--\n\nThe parameter, buffer or module of that name."};

}  // namespace

void define_layers(nb::module_& m) {
  const auto interned = [](const char* text) { return check(PyUnicode_InternFromString(text)); };
  hooked_name = interned("_hooked"), forward_name = interned("forward"), call_with_hooks_name = interned("_call_with_hooks");
  missing_name = interned("_missing_attribute");
  registry_names = {interned("_parameters"), interned("_buffers"), interned("_modules")};
  global_hooks = check(PyDict_New());
  m.attr("_global_call_hooks") = nb::handle(global_hooks);
  m.attr("_module_call") = nb::steal(check(PyDescr_NewMethod(&PyBaseObject_Type, &call_method)));
  m.attr("_module_getattr") = nb::steal(check(PyDescr_NewMethod(&PyBaseObject_Type, &getattr_method)));
}

}  // namespace naru::py
