// Conversion of Python arguments and results.
#include "object/convert.h"

#include <complex>
#include <map>

namespace naru::py {

int64_t long_value(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) {
    PyErr_SetString(PyExc_OverflowError, "Overflow when unpacking long long: an integer lies outside the range of int64");
    nb::raise_python_error();
  }
  if (v == -1 && PyErr_Occurred()) nb::raise_python_error();
  return v;
}

PyObject* item_at(PyObject* list, Py_ssize_t i) {
  if (i >= PySequence_Fast_GET_SIZE(list)) throw RuntimeError("a list was shortened while it was read (by a method of its own elements)");
  return PySequence_Fast_GET_ITEM(list, i);
}

namespace {
// Also accepts the range of uint64.
Scalar integer_value(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow == 0 && (v != -1 || !PyErr_Occurred())) return v;
  if (overflow > 0) {
    const unsigned long long u = PyLong_AsUnsignedLongLong(o);
    if (!PyErr_Occurred()) return Scalar::of_unsigned(u);
    PyErr_Clear();
  }
  return long_value(o);
}
}  // namespace

bool scalar_from(PyObject* o, Scalar& s, bool tensors) {
  if (PyFloat_Check(o)) {
    s = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    s = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    s = integer_value(o);
    return true;
  }
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (!tensors || t.numel() != 1) return false;
    s = t.item();
    return true;
  }
  if (PyComplex_Check(o)) {
    s = Scalar(std::complex(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
    return true;
  }
  const NumPy& np = numpy();
  if (!np.generic || !PyObject_TypeCheck(o, np.generic)) return false;
  if (PyObject_TypeCheck(o, np.boolean)) {
    s = Scalar(PyObject_IsTrue(o) == 1);
    return true;
  }
  if (PyObject_TypeCheck(o, np.integer)) {
    nb::object i = nb::steal(check(PyNumber_Index(o)));
    s = integer_value(i.ptr());
    return true;
  }
  if (PyObject_TypeCheck(o, np.complex)) {
    const Py_complex v = PyComplex_AsCComplex(o);
    if (v.real == -1 && PyErr_Occurred()) throw nb::python_error();
    s = Scalar(std::complex(v.real, v.imag));
    return true;
  }
  nb::object f = nb::steal(PyNumber_Float(o));
  if (!f.is_valid()) {
    PyErr_Clear();
    return false;
  }
  s = Scalar(PyFloat_AS_DOUBLE(f.ptr()));
  return true;
}

bool number_from(PyObject* o, Scalar& s) { return !(is_tensor(o) && tensor_of(o).requires_grad()) && scalar_from(o, s); }

bool int_from(PyObject* o, int64_t& v) {
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o)) {
    v = long_value(o);
    return true;
  }
  if (PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (t.numel() != 1 || is_inexact(t.dtype())) return false;
    v = t.item().to_int();
    return true;
  }
  if (PyObject* i = PyNumber_Index(o)) {
    nb::object held = nb::steal(i);
    v = long_value(i);
    return true;
  }
  PyErr_Clear();
  return false;
}

bool dims_from(PyObject* o, Dims& d) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (!is_array(o)) return false;
    nb::object list = nb::steal(check(PySequence_List(o)));
    return dims_from(list.ptr(), d);
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  d.clear();
  for (Py_ssize_t i = 0; i < n; ++i) {
    int64_t v = 0;
    const nb::object item = nb::borrow(item_at(o, i));
    if (!int_from(item.ptr(), v)) return false;
    d.push_back(v);
  }
  return true;
}

bool tensors_from(PyObject* o, std::vector<Tensor>& list) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  list.clear();
  list.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (!is_tensor(item)) return false;
    list.push_back(tensor_of(item));
  }
  return true;
}

bool Arg<bool>::load(PyObject* const* o) {
  if (PyBool_Check(*o)) {
    value = *o == Py_True;
    return true;
  }
  const NumPy& np = numpy();
  if (!np.boolean || !PyObject_TypeCheck(*o, np.boolean)) return false;
  value = PyObject_IsTrue(*o) == 1;
  return true;
}

bool Arg<std::string_view>::load(PyObject* const* o) {
  if (!PyUnicode_Check(*o)) return false;
  value = utf8(*o);
  return true;
}

bool Arg<Generator*>::load(PyObject* const* o) {
  if (*o == Py_None) return true;
  return nb::try_cast<Generator*>(nb::handle(*o), value);
}

bool Arg<Reduction>::load(PyObject* const* o) {
  Arg<std::string_view> text;
  if (!text.load(o))
    throw ValueError("{} is not a valid value for reduction; wanted 'none', 'mean' or 'sum'", nb::str(nb::handle(*o)).c_str());
  if (text.value == "none")
    value = Reduction::None;
  else if (text.value == "mean")
    value = Reduction::Mean;
  else if (text.value == "sum")
    value = Reduction::Sum;
  else
    throw ValueError("{} is not a valid value for reduction; wanted 'none', 'mean' or 'sum'", text.value);
  return true;
}

bool Arg<Options>::load(PyObject* const* o) {
  DType t{};
  Device d;
  Arg<bool> flag;
  if (o[0] != Py_None) {
    if (!dtype_from(o[0], t)) return false;
    value.dtype = t;
  }
  if (const std::optional<Layout> l = layout_from(o[1]); l && *l != Layout::Strided)
    throw NotImplementedError(
        "layout=torch.{} is not supported here; make a sparse tensor by sparse_coo_tensor, sparse_csr_tensor or to_sparse()", name_of(*l));
  if (o[2] != Py_None) {
    if (!device_from(o[2], d)) return false;
    value.device = d;
  }
  if (o[3] != Py_None) {
    if (!flag.load(o + 3)) return false;
    value.pin_memory = flag.value;
  }
  if (o[4] != Py_None) {
    if (!flag.load(o + 4)) return false;
    value.requires_grad = flag.value;
  }
  return true;
}

bool Arg<LayoutOptions>::load(PyObject* const* o) {
  PyObject* const plain[] = {o[0], Py_None, o[2], o[3], o[4]};
  Arg<Options> options;
  if (!options.load(plain)) return false;
  static_cast<Options&>(value) = options.value;
  value.layout = layout_from(o[1]);
  return true;
}

PyObject* scalar_object(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(s.to_bool());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(s.to_int());
    case Scalar::Kind::Unsigned:
      return PyLong_FromUnsignedLongLong(s.to_bits());
    case Scalar::Kind::Complex:
      return PyComplex_FromDoubles(s.real(), s.imag());
    default:
      return PyFloat_FromDouble(s.to_double());
  }
}

PyObject* to_python(const std::vector<Tensor>& list) {
  nb::object tuple = nb::steal(check(PyTuple_New(static_cast<Py_ssize_t>(list.size()))));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), check(wrap(list[i])));
  return tuple.release().ptr();
}

PyObject* to_python(const std::pair<Tensor, Tensor>& pair) {
  nb::object a = wrapped(pair.first), b = wrapped(pair.second);
  return PyTuple_Pack(2, a.ptr(), b.ptr());
}

// --- named tuples -------------------------------------------------------------------------------------------------------------------

namespace {

const std::string kReturnTypes = "torch.return_types.";

// As in PyTorch: each field on a separate line.
PyObject* named_repr(PyObject* o) {
  return guarded([&] {
    std::string text = std::string(Py_TYPE(o)->tp_name) + "(\n";
    nb::object fields = nb::borrow(o).attr("__match_args__");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      if (i) text += ",\n";
      nb::object value = nb::steal(check(PyObject_Repr(PyTuple_GET_ITEM(o, i))));
      text += printable(PyTuple_GET_ITEM(fields.ptr(), i)) + "=" + printable(value.ptr());
    }
    return to_python(text + ")");
  });
}

// Created once per name. Needs the GIL.
PyTypeObject* return_type(const std::string& kind, const std::vector<const char*>& names) {
  static std::map<std::string, PyTypeObject*> known;
  PyTypeObject*& type = known[kind];
  if (type) return type;
  auto* text = new std::string(kReturnTypes + kind);  // the type refers to it forever
  auto* fields = new PyStructSequence_Field[names.size() + 1]{};
  for (size_t i = 0; i < names.size(); ++i) fields[i].name = names[i];
  PyStructSequence_Desc desc = {text->c_str(), nullptr, fields, static_cast<int>(names.size())};
  type = PyStructSequence_NewType(&desc);
  check(reinterpret_cast<PyObject*>(type));
  type->tp_repr = named_repr;
  type->tp_str = named_repr;
  PyType_Modified(type);
  return type;
}

}  // namespace

PyObject* with_fields_of(PyObject* result, PyObject* tensors) {
  const std::string name = Py_TYPE(result)->tp_name;
  if (name.rfind(kReturnTypes, 0) != 0) return Py_NewRef(tensors);
  nb::object fields = nb::borrow(result).attr("__match_args__");
  std::vector<const char*> names;  // strings of the type of result, which lives forever
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.ptr()); ++i) names.push_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(fields.ptr(), i)));
  nb::object o = nb::steal(check(PyStructSequence_New(return_type(name.substr(kReturnTypes.size()) + "_out", names))));
  for (size_t i = 0; i < names.size(); ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    PyStructSequence_SET_ITEM(o.ptr(), at, Py_NewRef(PySequence_Fast_GET_ITEM(tensors, at)));
  }
  return o.release().ptr();
}

PyObject* to_python(const NamedList& n) {
  std::vector<const char*> names;
  for (const auto& field : n.fields) names.push_back(field.first);
  nb::object o = nb::steal(check(PyStructSequence_New(return_type(n.kind, names))));
  for (size_t i = 0; i < n.fields.size(); ++i) PyStructSequence_SET_ITEM(o.ptr(), static_cast<Py_ssize_t>(i), wrap(n.fields[i].second));
  return o.release().ptr();
}
PyObject* to_python(const Named& n) { return to_python(NamedList{n.kind, {{n.first_name, n.first}, {n.second_name, n.second}}}); }

}  // namespace naru::py
