// x[...], x[...] = value, len, iteration and `in`.
#include "object/overlap.h"
#include "object/overrides.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

bool is_mask_or_positions(DType t) { return t == DType::Bool || (is_integral(t) && !is_wide_unsigned(t)); }

// One part of an index. Sequences become tensors of positions or masks.
Index part_of(PyObject* o) {
  if (PyLong_CheckExact(o)) {
    int64_t v = 0;
    int_from(o, v);
    return Index(v);
  }
  if (PySlice_Check(o)) {
    const auto* s = reinterpret_cast<PySliceObject*>(o);
    const auto bound = [](PyObject* b) -> std::optional<int64_t> {
      int64_t v = 0;
      if (b == Py_None) return std::nullopt;
      if (PyLong_Check(b)) {
        // Beyond 64 bits is beyond the end.
        int overflow = 0;
        v = PyLong_AsLongLongAndOverflow(b, &overflow);
        return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : v;
      }
      if (!int_from(b, v))
        throw TypeError("slice indices must be integers or None or have an __index__ method (got {})", Py_TYPE(b)->tp_name);
      return v;
    };
    const int64_t step = bound(s->step).value_or(1);
    if (step <= 0) throw ValueError("step must be greater than zero (got {}); flip() reverses a dimension", step);
    return Index(Slice(bound(s->start), bound(s->stop), step));
  }
  if (o == Py_None) return Index(None);
  if (o == Py_Ellipsis) return Index(Ellipsis);
  if (PyBool_Check(o)) return Index(o == Py_True);
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (t.dim() == 0 && (t.dtype() == DType::I8 || t.dtype() == DType::I16) && !t.device().is_meta()) return Index(t.item().to_int());
    if (!is_mask_or_positions(t.dtype()))
      throw IndexError("tensors used as indices must be long, int, byte or bool tensors (got {})", name_of(t.dtype()));
    if (t.dtype() == DType::U8)
      check(
          PyErr_WarnEx(PyExc_UserWarning, "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", 1));
    return Index(t);
  }
  if (is_array(o)) {
    const Tensor t = from_array(o);
    if (!is_mask_or_positions(t.dtype()))
      throw IndexError("tensors used as indices must be long, int, byte or bool tensors (got an array of {})", name_of(t.dtype()));
    return Index(t);
  }
  if (PyList_Check(o) || PyTuple_Check(o) || PyRange_Check(o)) {
    Tensor t = tensor_from(o, std::nullopt, Device(DeviceType::Cpu));
    if (t.numel() == 0) t = t.to(DType::I64);
    if (!is_mask_or_positions(t.dtype()))
      throw IndexError("tensors used as indices must be long, int, byte or bool tensors (got a sequence of {})", name_of(t.dtype()));
    return Index(t);
  }
  const NumPy& np = numpy();
  if (np.boolean && PyObject_TypeCheck(o, np.boolean)) return Index(PyObject_IsTrue(o) == 1);
  int64_t v = 0;
  if (int_from(o, v)) return Index(v);
  throw IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
                   Py_TYPE(o)->tp_name);
}

// As in NumPy's past: a short list with a slice, a sequence, a tensor, None or ... in it is a tuple of indices.
bool stands_for_tuple(PyObject* list) {
  const Py_ssize_t n = PyList_GET_SIZE(list);
  if (n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyList_GET_ITEM(list, i);
    if (PySlice_Check(o) || o == Py_Ellipsis || o == Py_None || is_tensor(o) || PyList_Check(o) || PyTuple_Check(o)) return true;
  }
  return false;
}

std::vector<Index> parts_of(PyObject* key) {
  std::vector<Index> parts;
  nb::object tuple;
  if (PyList_Check(key) && stands_for_tuple(key)) {
    tuple = nb::steal(check(PyList_AsTuple(key)));
    key = tuple.ptr();
    check(PyErr_WarnEx(
        PyExc_UserWarning,
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
        "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which "
        "will result either in an error or a different result",
        1));
  }
  if (PyTuple_Check(key)) {
    parts.reserve(static_cast<size_t>(PyTuple_GET_SIZE(key)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) parts.push_back(part_of(PyTuple_GET_ITEM(key, i)));
  } else {
    parts.push_back(part_of(key));
  }
  return parts;
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (PyLong_CheckExact(key)) {
      int64_t i = 0;
      int_from(key, i);
      if (!overrides_watched) [[likely]]
        return wrap(t[i]);
    }
    if (overrides_watched || !(PySlice_Check(key) || is_tensor(key)))
      if (PyObject* result = dispatch_torch_function("__getitem__", {self, key}, !overrides_watched)) return result;
    return wrap(t.index(parts_of(key)));
  });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (!value) throw TypeError("Tensor does not support deleting items");
    Tensor& t = tensor_of(self);
    if (PyObject* result = dispatch_torch_function("__setitem__", {self, key, value}, !overrides_watched)) {
      Py_DECREF(result);
      return 0;
    }
    const std::vector<Index> parts = parts_of(key);
    Scalar s;
    check_assignment(t, parts, is_tensor(value) ? tensor_of(value) : Tensor());
    if (is_tensor(value))
      t.index_put_(parts, tensor_of(value));
    else if (scalar_from(value, s, false))
      t.index_put_(parts, Operand(s));
    else
      throw TypeError("can't assign a {} to a torch tensor of {}; make a tensor of it first: torch.tensor(value)", Py_TYPE(value)->tp_name,
                      name_of(t.dtype()));
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t.sizes()[0]);
}

PyObject* sequence_item(PyObject* self, Py_ssize_t i) {
  return guarded([&] { return wrap(tensor_of(self)[static_cast<int64_t>(i)]); });
}

PyObject* iterate(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (t.dim() == 0) throw TypeError("iteration over a 0-d tensor");
    PyObject* asked = overrides_watched && Py_TYPE(self) != tensor_type ? dispatch_torch_function("unbind", {self}, false) : nullptr;
    nb::object rows = nb::steal(asked ? asked : check(to_python(unbind(t, 0))));
    return PyObject_GetIter(rows.ptr());
  });
}

int contains(PyObject* self, PyObject* element) {
  try {
    const Tensor& t = tensor_of(self);
    if (is_tensor(element)) return any(eq(t, tensor_of(element))).item().to_bool();
    Scalar s;
    if (!scalar_from(element, s, false))
      throw RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class '{}'>.",
                         Py_TYPE(element)->tp_name);
    return any(eq(t, Operand(s))).item().to_bool();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace

void add_index_slots(std::vector<PyType_Slot>& slots) {
  const auto add = [&](int id, auto* f) { slots.push_back({id, reinterpret_cast<void*>(f)}); };
  add(Py_mp_subscript, &get_item);
  add(Py_mp_ass_subscript, &set_item);
  add(Py_mp_length, &length);
  add(Py_sq_length, &length);
  add(Py_sq_item, &sequence_item);
  add(Py_sq_contains, &contains);
  add(Py_tp_iter, &iterate);
}

}  // namespace naru::py
