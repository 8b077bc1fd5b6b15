#include "object/batches.h"

#include <unordered_map>

#include "autograd/graph/batch.h"
#include "object/function.h"
#include "object/overrides.h"
#include "object/tensor_object.h"

namespace naru::py {

bool batches_watched = false;

namespace {

int64_t vmaps_under_way = 0;  // of all threads
// naru.func's functions: has_rule(name), dispatch(function, args, kwargs), missed(function, args, kwargs, error).
PyObject *has_rule = nullptr, *dispatch = nullptr, *missed = nullptr;

// Whether Python has a rule, by names, which live as long as the module.
std::unordered_map<const char*, bool>& known() {
  static auto& map = *new std::unordered_map<const char*, bool>;
  return map;
}

bool holds(PyObject* o) { return is_tensor(o) && is_batched(tensor_of(o)); }

bool holds_batch(PyObject* o) {
  if (is_tensor(o)) return is_batched(tensor_of(o));
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  return meets_batch(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o));
}

void count_vmaps(int64_t change) {
  vmaps_entered += change;
  vmaps_under_way += change;
  batches_watched = vmaps_under_way > 0;
  watch_batches(batches_watched);
}

}  // namespace

bool meets_batch(PyObject* const* args, Py_ssize_t count) { return std::any_of(args, args + count, holds_batch); }

PyObject* by_python_rule(const char* name, PyObject* function, PyObject* args, PyObject* kwargs) {
  const auto [found, added] = known().try_emplace(name, false);
  if (added) {
    const nb::object has = nb::steal(check(PyObject_CallFunction(has_rule, "s", name)));
    found->second = has.ptr() == Py_True;
  }
  return found->second ? check(PyObject_CallFunctionObjArgs(dispatch, function, args, kwargs, nullptr)) : nullptr;
}

PyObject* after_batching_error(PyObject* function, PyObject* args, PyObject* kwargs) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const nb::object held_type = nb::steal(type), error = nb::steal(value), held_trace = nb::steal(trace);
  if (trace) PyException_SetTraceback(value, trace);
  return check(PyObject_CallFunctionObjArgs(missed, function, args, kwargs, error.ptr(), nullptr));
}

// Functions of nanobind's: those of this module would come back to Python's rules.
void define_batches_of_vmap(nb::module_& m) {
  m.def("_set_batching", [](nb::object rule, nb::object call, nb::object miss) {
    known().clear();
    Py_XSETREF(has_rule, rule.release().ptr());
    Py_XSETREF(dispatch, call.release().ptr());
    Py_XSETREF(missed, miss.release().ptr());
  });
  m.def("_enter_vmap", [] {
    count_vmaps(1);
    return vmaps_entered;
  });
  m.def("_leave_vmap", [] { count_vmaps(-1); });
  m.def("_make_batched", [](nb::handle value, int64_t level) { return nb::steal(wrap(make_batched(tensor_of(value.ptr()), level))); });
  m.def(
      "_batch_level", [](nb::handle x) { return holds(x.ptr()) ? batch_parts(tensor_of(x.ptr())).level : int64_t{0}; }, nb::arg().none());
  m.def("_batch_value", [](nb::handle x) { return nb::steal(wrap(batch_parts(tensor_of(x.ptr())).value)); });
}

}  // namespace naru::py
