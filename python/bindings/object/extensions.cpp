// What C++ extensions of users need: the table of conversions (naru/torch/python_table.h), and operators and classes that their libraries
// register (naru/torch/registry.h). python/naru/_functions/compiled.py has the Python part.
#include <nanobind/stl/string.h>

#include "naru/torch/python_table.h"
#include "naru/torch/registry.h"
#include "object/convert.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using library::IValue;

// --- the table

template <class F>
PyObject* made(const F& f) noexcept {
  return guarded([&] { return f(); });
}
template <class F>
bool read(const F& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return false;
  }
}

const PythonTable table = {
    .version = PythonTable::kVersion,
    .tensor = [](PyObject* o) -> const Tensor* { return is_tensor(o) ? &tensor_of(o) : nullptr; },
    .tensor_object = [](const Tensor& t) { return made([&] { return wrap(t); }); },
    .scalar = [](PyObject* o, Scalar& s) { return read([&] { return number_from(o, s); }); },
    .scalar_object = [](const Scalar& s) { return made([&] { return scalar_object(s); }); },
    .dtype = [](PyObject* o, DType& t) { return read([&] { return dtype_from(o, t); }); },
    .dtype_object = [](DType t) { return made([&] { return dtype_object(t); }); },
    .device = [](PyObject* o, Device& d) { return read([&] { return device_from(o, d); }); },
    .device_object = [](Device d) { return made([&] { return device_object(d); }); },
    .dims = [](PyObject* o, Dims& d) { return read([&] { return dims_from(o, d); }); },
    .size_object = [](const Dims& d) { return made([&] { return size_object(d); }); },
    .format = [](PyObject* o, MemoryFormat& f) { return read([&] { return format_from(o, f); }); },
    .set_error =
        [](const std::exception_ptr& p) {
          // Rethrown here: each module has its own C++ runtime, which knows only of the exceptions that were caught in it.
          try {
            std::rethrow_exception(p);
          } catch (...) {
            set_python_error();
          }
        },
};

// --- values of operators that were registered by name

constexpr const char* kObjectName = "naru.library.object";
PyObject* make_instance = nullptr;  // (name of the class, capsule) -> its Python object

PyObject* object_of(const IValue& v);

PyObject* capsule_of(const IValue::Object& object) {
  auto* held = new IValue::Object(object);
  PyObject* capsule =
      PyCapsule_New(held, kObjectName, [](PyObject* c) { delete static_cast<IValue::Object*>(PyCapsule_GetPointer(c, kObjectName)); });
  if (!capsule) delete held;
  return check(capsule);
}

PyObject* sequence_of(const IValue::List& values, bool tuple) {
  nb::list list;
  for (const IValue& v : values) list.append(nb::steal(object_of(v)));
  return tuple ? check(PyList_AsTuple(list.ptr())) : list.release().ptr();
}

PyObject* dict_of(const IValue::Dict& values) {
  nb::dict dict;
  for (const auto& [key, value] : values) dict[nb::steal(object_of(key))] = nb::steal(object_of(value));
  return dict.release().ptr();
}

PyObject* instance_of(const IValue::Object& object) {
  if (!object) Py_RETURN_NONE;
  const std::string name = library::class_of(*object);
  if (name.empty()) throw RuntimeError("an operator returned an object of a class that no library has declared with torch::class_");
  const nb::object capsule = nb::steal(capsule_of(object)), text = nb::str(name.c_str(), name.size());
  return check(PyObject_CallFunctionObjArgs(make_instance, text.ptr(), capsule.ptr(), nullptr));
}

// A new reference.
PyObject* object_of(const IValue& v) {
  return std::visit(
      [](const auto& value) -> PyObject* {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          Py_RETURN_NONE;
        else if constexpr (std::is_same_v<T, Tensor>)
          return check(wrap(value));
        else if constexpr (std::is_same_v<T, std::string>)
          return check(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
        else if constexpr (std::is_same_v<T, Device>)
          return check(device_object(value));
        else if constexpr (std::is_same_v<T, DType>)
          return check(dtype_object(value));
        else if constexpr (std::is_same_v<T, MemoryFormat>)
          return check(PyLong_FromLongLong(static_cast<long long>(value)));
        else if constexpr (std::is_same_v<T, IValue::List>)
          return sequence_of(value, false);
        else if constexpr (std::is_same_v<T, IValue::Tuple>)
          return sequence_of(value.values, true);
        else if constexpr (std::is_same_v<T, IValue::Dict>)
          return dict_of(value);
        else if constexpr (std::is_same_v<T, IValue::Object>)
          return instance_of(value);
        else
          return check(scalar_object(Scalar(value)));
      },
      v.variant());
}

IValue value_of(PyObject* o);

IValue::List list_of(PyObject* sequence) {
  IValue::List list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    const nb::object item = nb::borrow(item_at(sequence, i));
    list.push_back(value_of(item.ptr()));
  }
  return list;
}

IValue number_of(const Scalar& s) { return library::Conversion<Scalar>::box(s); }

IValue value_of(PyObject* o) {
  if (o == Py_None) return {};
  if (is_tensor(o)) return tensor_of(o);
  if (PyUnicode_Check(o)) return std::string(utf8(o));
  if (PyList_Check(o)) return list_of(o);
  if (PyTuple_Check(o)) return IValue::Tuple{list_of(o)};
  Scalar number;
  if (scalar_from(o, number, false)) return number_of(number);
  DType type;
  if (dtype_from(o, type)) return type;
  MemoryFormat format;
  if (format_from(o, format)) return format;
  Device device;
  if (device_from(o, device)) return device;
  if (PyDict_Check(o)) {
    IValue::Dict dict;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) dict.emplace_back(value_of(key), value_of(value));
    return dict;
  }
  const nb::object capsule = nb::getattr(nb::handle(o), "_cpp_object", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), kObjectName)) return *static_cast<IValue::Object*>(PyCapsule_GetPointer(capsule.ptr(), kObjectName));
  throw TypeError("an operator of a C++ library takes tensors, numbers, texts, dtypes, devices, and lists of them, not {}",
                  Py_TYPE(o)->tp_name);
}

PyObject* call(const library::Function& function, const std::string& name, nb::tuple arguments) {
  library::Stack stack;
  for (nb::handle a : arguments) stack.push_back(value_of(a.ptr()));
  IValue result;
  {
    const GilRelease without;
    result = function(name.c_str(), stack);
    stack.clear();
  }
  return object_of(result);
}

const char* kind_text(library::Registration::Kind kind) {
  constexpr const char* kTexts[] = {"operator", "kernel", "class", "method", "error"};
  return kTexts[static_cast<int>(kind)];
}

}  // namespace

void define_extensions(nb::module_& m) {
  m.attr("_cpp_table") = nb::steal(check(PyCapsule_New(const_cast<PythonTable*>(&table), PythonTable::kName, nullptr)));
  nb::class_<library::Function>(m, "_LibraryFunction", "A function that a C++ library has registered.")
      .def(
          "call",
          [](const library::Function& f, const std::string& name, nb::tuple arguments) { return nb::steal(call(f, name, arguments)); },
          "Calls it for the operator or method of that name.");
  m.def(
      "_take_registrations",
      [] {
        nb::list list;
        for (library::Registration& r : library::take_registrations())
          list.append(
              nb::make_tuple(kind_text(r.kind), r.name, r.text, r.function ? nb::cast(std::move(r.function)) : nb::none(), r.is_static));
        return list;
      },
      "What C++ libraries have registered since the last call: (kind, name, text, function, whether static).");
  m.def(
      "_set_instance_maker", [](nb::object f) { make_instance = f.release().ptr(); },
      "The function that makes a custom class's Python object.");
}

}  // namespace naru::py
