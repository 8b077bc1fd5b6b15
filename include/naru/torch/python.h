// C++ extensions for Python, as libtorch has them in torch/extension.h: pybind11 with conversions for naru's tensors, dtypes, devices ...,
// which are the objects of Python's naru; exceptions become the same Python exceptions as from naru's own functions.
#pragma once

#include <pybind11/pybind11.h>

#include <pybind11/complex.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <iostream>

#include "naru/torch.h"
#include "naru/torch/python_table.h"

namespace torch::python {

// The conversions of naru._C, which must be there: naru is imported if need be.
inline const naru::PythonTable& table() {
  static const naru::PythonTable* const found = [] {
    namespace py = pybind11;
    const py::object capsule = py::module_::import("naru._C").attr("_cpp_table");
    const auto* at = static_cast<const naru::PythonTable*>(PyCapsule_GetPointer(capsule.ptr(), naru::PythonTable::kName));
    if (!at) throw py::error_already_set();
    if (at->version != naru::PythonTable::kVersion)
      throw py::import_error("this extension was compiled with the headers of another version of naru: compile it again");
    return at;
  }();
  return *found;
}

// A new reference to an object, or the Python error that is set.
inline pybind11::handle given(PyObject* made) {
  if (!made) throw pybind11::error_already_set();
  return made;
}
// The answer to a question of the table, or the Python error that it set.
inline bool answered(bool yes) {
  if (!yes && PyErr_Occurred()) throw pybind11::error_already_set();
  return yes;
}

namespace detail {

inline void translate(std::exception_ptr p) {
  try {
    std::rethrow_exception(p);
  } catch (const naru::Error&) {
    table().set_error(p);
  }
}

// Done when the extension is loaded, before its functions can be called.
struct Translation {
  Translation() {
    if (!Py_IsInitialized()) return;
    const pybind11::gil_scoped_acquire gil;
    pybind11::register_local_exception_translator(&translate);
  }
};
static const Translation translation;  // one in each extension: the translator is for its functions alone

}  // namespace detail

// Binds a torch::nn::Module with its common methods; add py::init and forward: bind_module<Net>(m, "Net").def(py::init<>()) ...
template <class M>
pybind11::class_<M, std::shared_ptr<M>> bind_module(pybind11::module_ m, const char* name) {
  namespace py = pybind11;
  static_assert(std::is_base_of_v<naru::nn::Module, M>, "bind_module<M>: M must be derived from torch::nn::Module");
  return py::class_<M, std::shared_ptr<M>>(m, name)
      .def(
          "train",
          [](std::shared_ptr<M> self, bool mode) {
            self->train(mode);
            return self;
          },
          py::arg("mode") = true)
      .def("eval",
           [](std::shared_ptr<M> self) {
             self->eval();
             return self;
           })
      .def(
          "zero_grad", [](M& self, bool set_to_none) { self.zero_grad(set_to_none); }, py::arg("set_to_none") = true)
      .def(
          "parameters", [](const M& self, bool recurse) { return self.parameters(recurse); }, py::arg("recurse") = true)
      .def(
          "buffers", [](const M& self, bool recurse) { return self.buffers(recurse); }, py::arg("recurse") = true)
      .def(
          "named_parameters",
          [](const M& self, bool recurse) { return static_cast<const naru::nn::Module&>(self).named_parameters(recurse); },
          py::arg("recurse") = true)
      .def(
          "named_buffers", [](const M& self, bool recurse) { return static_cast<const naru::nn::Module&>(self).named_buffers(recurse); },
          py::arg("recurse") = true)
      .def("state_dict",
           [](const M& self) {
             py::dict made;
             for (const auto& [key, value] : self.state_dict()) made[py::str(key)] = value;
             return made;
           })
      .def("to",
           [](std::shared_ptr<M> self, naru::Device device) {
             self->to(device);
             return self;
           })
      .def("to",
           [](std::shared_ptr<M> self, naru::DType dtype) {
             self->to(dtype);
             return self;
           })
      .def_property_readonly("training", [](const M& self) { return self.is_training(); })
      .def("__repr__", [](const M& self) { return self.str(); });
}

}  // namespace torch::python

namespace pybind11::detail {

template <>
struct type_caster<naru::Tensor> {
  PYBIND11_TYPE_CASTER(naru::Tensor, const_name("torch.Tensor"));
  bool load(handle from, bool) {
    const naru::Tensor* found = torch::python::table().tensor(from.ptr());
    if (found) value = *found;
    return found != nullptr;
  }
  static handle cast(const naru::Tensor& t, return_value_policy, handle) {
    return torch::python::given(torch::python::table().tensor_object(t));
  }
};

// The elements that an index or a mask selects, as a tensor.
template <>
struct type_caster<naru::Indexed> {
  static constexpr auto name = const_name("torch.Tensor");
  static handle cast(const naru::Indexed& t, return_value_policy policy, handle parent) {
    return type_caster<naru::Tensor>::cast(naru::Tensor(t), policy, parent);
  }
};

#define NARU_TYPE_CASTER(Type, text, read, make)                                                                                    \
  template <>                                                                                                                       \
  struct type_caster<Type> {                                                                                                        \
    PYBIND11_TYPE_CASTER(Type, const_name(text));                                                                                   \
    bool load(handle from, bool) { return torch::python::answered(torch::python::table().read(from.ptr(), value)); }                \
    static handle cast(const Type& v, return_value_policy, handle) { return torch::python::given(torch::python::table().make(v)); } \
  };
NARU_TYPE_CASTER(naru::Scalar, "Number", scalar, scalar_object)
NARU_TYPE_CASTER(naru::DType, "torch.dtype", dtype, dtype_object)
NARU_TYPE_CASTER(naru::Device, "torch.device", device, device_object)
NARU_TYPE_CASTER(naru::Dims, "Sequence[int]", dims, size_object)
#undef NARU_TYPE_CASTER

template <>
struct type_caster<torch::Device> {
  static constexpr auto name = const_name("torch.device");
  template <class T>
  using cast_op_type = torch::Device;
  operator torch::Device() const { return torch::Device(value); }
  bool load(handle from, bool) { return torch::python::answered(torch::python::table().device(from.ptr(), value)); }
  static handle cast(const torch::Device& d, return_value_policy, handle) {
    return torch::python::given(torch::python::table().device_object(d));
  }

 private:
  naru::Device value;
};

template <>
struct type_caster<naru::MemoryFormat> {
  PYBIND11_TYPE_CASTER(naru::MemoryFormat, const_name("torch.memory_format"));
  bool load(handle from, bool) { return torch::python::answered(torch::python::table().format(from.ptr(), value)); }
};

template <class T>
struct type_caster<torch::ArrayRef<T>> {
  static constexpr auto name = const_name("Sequence");
  template <class U>
  using cast_op_type = torch::ArrayRef<T>;
  operator torch::ArrayRef<T>() { return torch::ArrayRef<T>(held); }
  bool load(handle from, bool convert) {
    make_caster<std::vector<T>> list;
    if (!list.load(from, convert)) return false;
    held = cast_op<std::vector<T>&&>(std::move(list));
    return true;
  }
  static handle cast(const torch::ArrayRef<T>& list, return_value_policy policy, handle parent) {
    return make_caster<std::vector<T>>::cast(list.vec(), policy, parent);
  }

 private:
  std::vector<T> held;
};

}  // namespace pybind11::detail

PYBIND11_DECLARE_HOLDER_TYPE(T, torch::intrusive_ptr<T>, true)

namespace torch {
namespace py = pybind11;
}
// libtorch has this name outside of its namespace, too.
namespace py = pybind11;
