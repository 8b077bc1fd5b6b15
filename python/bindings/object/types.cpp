// torch.Size, torch.dtype, torch.device, layouts and memory formats.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>

#include "core/device_kinds.h"
#include "naru/device.h"
#include "object/tensor_object.h"
#include "runtime/device/registry.h"

namespace naru::py {

PyTypeObject* size_type = nullptr;

namespace {

// --- torch.Size ---------------------------------------------------------------------------------------------------------------------

PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  nb::object held = nb::steal(tuple);
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* o = size_type->tp_alloc(size_type, n);
  if (!o) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(o, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return o;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    nb::object made = nb::steal(check(PyTuple_Type.tp_new(type, args, kwargs)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.ptr()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(made.ptr(), i);
      int64_t v = 0;
      if (PyLong_Check(item)) {
        long_value(item);  // raises for an invalid size
        continue;
      }
      if (!int_from(item, v)) throw TypeError("torch.Size() takes an iterable of 'int' (item {} is '{}')", i, Py_TYPE(item)->tp_name);
      PyTuple_SET_ITEM(made.ptr(), i, check(PyLong_FromLongLong(v)));
      Py_DECREF(item);
    }
    return made.release().ptr();
  });
}

PyObject* size_repr(PyObject* o) {
  return guarded([&] {
    std::string text = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)  // an item that is not a number is the length of a ragged dimension
      text += (i ? ", " : "") + std::string(nb::str(nb::handle(PyTuple_GET_ITEM(o, i))).c_str());
    return to_python(text + "])");
  });
}

PyObject* size_concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    if (PyList_Check(b))
      PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not \"%s\") to torch.Size", Py_TYPE(b)->tp_name);
    else
      PyErr_Format(PyExc_TypeError, "can only concatenate tuple to torch.Size (not \"%s\")", Py_TYPE(b)->tp_name);
    return nullptr;
  }
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* size_subscript(PyObject* o, PyObject* key) {
  PyObject* item = PyTuple_Type.tp_as_mapping->mp_subscript(o, key);
  return PySlice_Check(key) ? as_size(item) : item;
}
PyObject* size_numel(PyObject* o, PyObject*) {
  return guarded([&] {
    Dims sizes;
    dims_from(o, sizes);
    return PyLong_FromLongLong(checked_product(sizes));
  });
}
PyObject* size_reduce(PyObject* o, PyObject*) {
  nb::object plain = nb::steal(PySequence_List(o));
  return plain.is_valid() ? Py_BuildValue("(O(O))", reinterpret_cast<PyObject*>(size_type), plain.ptr()) : nullptr;
}

void make_size(nb::module_& m) {
  static PyMethodDef methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                                  {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                         {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                         {Py_tp_str, reinterpret_cast<void*>(size_repr)},
                         {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                         {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                         {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>("The sizes of a tensor: a tuple of integers.")},
                         {0, nullptr}};
  PyType_Spec spec = {"naru._C.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  nb::object bases = nb::steal(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  size_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpecWithBases(&spec, bases.ptr())));
  m.attr("Size") = nb::handle(reinterpret_cast<PyObject*>(size_type));
}

// --- torch.dtype --------------------------------------------------------------------------------------------------------------------

struct PyDType {
  DType value;
};
std::array<PyObject*, kElementTypes> dtypes;

PyObject* dtype_of(DType t) { return Py_NewRef(dtypes[static_cast<size_t>(t)]); }

void make_dtypes(nb::module_& m) {
  auto type = nb::class_<PyDType>(m, "dtype", "The type of a tensor's elements.")
                  .def("__repr__", [](PyDType t) { return "torch." + std::string(name_of(t.value)); })
                  .def("__reduce__", [](PyDType t) { return "_dtype_" + std::string(name_of(t.value)); })
                  .def("to_complex", [](PyDType t) { return nb::steal(dtype_of(complex_of(t.value))); })
                  .def("to_real", [](PyDType t) { return nb::steal(dtype_of(real_of(t.value))); })
                  .def_prop_ro(
                      "itemsize", [](PyDType t) { return static_cast<int64_t>(size_of(t.value)); }, "Bytes of one element.")
                  .def_prop_ro("is_floating_point", [](PyDType t) { return is_floating(t.value); })
                  .def_prop_ro("is_complex", [](PyDType t) { return is_complex(t.value); })
                  .def_prop_ro("is_signed", [](PyDType t) { return is_signed(t.value); });
  for (int i = 0; i < kElementTypes; ++i) {
    const auto t = static_cast<DType>(i);
    nb::object o = nb::cast(PyDType{t});
    dtypes[static_cast<size_t>(i)] = o.ptr();
    m.attr(std::string(name_of(t)).c_str()) = o;
    m.attr(("_dtype_" + std::string(name_of(t))).c_str()) = o;  // pickled under this name
    o.inc_ref();
  }
  for (auto [name, t] : kDTypeAliases) m.attr(name) = nb::handle(dtypes[static_cast<size_t>(t)]);
  // There is one object per dtype; `copy` must not create another.
  type.def("__copy__", [](nb::object self) { return self; }).def("__deepcopy__", [](nb::object self, nb::object) { return self; });
}

// --- torch.device -------------------------------------------------------------------------------------------------------------------

struct PyDevice {
  Device value;
};
constexpr int kCached = 16;
PyObject* devices[kDeviceTypes][kCached + 1];

// The previous defaults of this thread's active `with torch.device(...)` blocks.
thread_local std::vector<Device> replaced;

Device index_device(int64_t index) {
  if (index < 0) throw RuntimeError("Device index must not be negative, got {}", index);
  if (index > 127) throw RuntimeError("Device index must be below 128, got {}", index);
  // An integer alone means a device of the available accelerator; PyTorch's default is cuda.
  DeviceType kind = DeviceType::Cuda;
  for (const DeviceKind& k : accelerator_kinds())
    if (runtime::device_count(k.type) > 0) {
      kind = k.type;
      break;
    }
  return Device(kind, static_cast<int>(index));
}

void make_device(nb::module_& m) {
  nb::class_<PyDevice>(m, "device", "A kind of device and its index: device('cuda:1'), device('cuda', 1), device('cpu').")
      .def(
          "__init__",
          [](PyDevice* self, nb::object type, std::optional<int64_t> index) {
            Device d;
            if (!device_from(type.ptr(), d))
              throw TypeError("device(): argument 'type' (position 1) must be str, int or device, not {}", Py_TYPE(type.ptr())->tp_name);
            if (index) {
              if (d.has_index())
                throw RuntimeError("type (string) must not include an index because index was passed explicitly: {}", d.str());
              if (*index < 0 || *index > 127) throw RuntimeError("Device index must be from 0 to 127, got {}", *index);
              d = Device(d.type, static_cast<int>(*index));
            }
            new (self) PyDevice{d};
          },
          nb::arg("type"), nb::arg("index") = nb::none())
      .def("__repr__", [](PyDevice d) { return d.value.repr(); })
      .def("__str__", [](PyDevice d) { return d.value.str(); })
      .def(
          "__eq__", [](PyDevice a, nb::object b) { return nb::isinstance<PyDevice>(b) && nb::cast<PyDevice>(b).value == a.value; },
          nb::arg().none())
      .def(
          "__ne__", [](PyDevice a, nb::object b) { return !nb::isinstance<PyDevice>(b) || !(nb::cast<PyDevice>(b).value == a.value); },
          nb::arg().none())
      .def("__hash__", [](PyDevice d) { return static_cast<int64_t>(std::hash<Device>()(d.value)); })
      .def("__reduce__",
           [](nb::object self) {
             const PyDevice d = nb::cast<PyDevice>(self);
             nb::object args = d.value.has_index() ? nb::make_tuple(std::string(name_of(d.value.type)), static_cast<int>(d.value.index))
                                                   : nb::make_tuple(std::string(name_of(d.value.type)));
             return nb::make_tuple(self.type(), args);
           })
      .def("__enter__",
           [](nb::object self) {
             replaced.push_back(default_device());
             set_default_device(nb::cast<PyDevice>(self).value);
             return self;
           })
      .def("__exit__",
           [](PyDevice, nb::args) {
             if (replaced.empty()) return;
             set_default_device(replaced.back());
             replaced.pop_back();
           })
      .def_prop_ro("type", [](PyDevice d) { return std::string(name_of(d.value.type)); })
      .def_prop_ro("index", [](PyDevice d) { return d.value.has_index() ? std::optional<int>(d.value.index) : std::nullopt; });
}

// --- layouts and memory formats -----------------------------------------------------------------------------------------------------

struct Word {
  std::string text;
};
std::array<PyObject*, 6> layouts;  // in the order of Layout; owned by the module
struct Format : Word {
  MemoryFormat value;
};

}  // namespace

PyObject* size_object(const Dims& dims) {
  PyObject* o = check(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(o, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(dims[i]));
  return o;
}

PyObject* dtype_object(DType t) { return Py_NewRef(dtypes[static_cast<size_t>(t)]); }

PyObject* device_object(Device d) {
  if (d.index >= kCached) return nb::cast(PyDevice{d}).release().ptr();
  PyObject*& slot = devices[static_cast<int>(d.type)][d.index + 1];
  if (!slot) slot = nb::cast(PyDevice{d}).release().ptr();
  return Py_NewRef(slot);
}

bool dtype_from(PyObject* o, DType& t) {
  for (int i = 0; i < kElementTypes; ++i)
    if (o == dtypes[static_cast<size_t>(i)]) {
      t = static_cast<DType>(i);
      return true;
    }
  if (!PyType_Check(o)) return false;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type))
    t = DType::F64;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type))
    t = DType::I64;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type))
    t = DType::Bool;
  else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type))
    t = kComplex128;
  else
    return false;
  return true;
}

bool device_from(PyObject* o, Device& d) {
  if (nb::isinstance<PyDevice>(nb::handle(o))) {
    d = nb::inst_ptr<PyDevice>(nb::handle(o))->value;
    return true;
  }
  if (PyUnicode_Check(o)) {
    d = Device::parse(utf8(o));
    return true;
  }
  if (!PyLong_Check(o) || PyBool_Check(o)) return false;
  d = index_device(long_value(o));
  return true;
}

PyObject* layout_object(Layout l) { return Py_NewRef(layouts[static_cast<size_t>(l)]); }
std::optional<Layout> layout_from(PyObject* o) {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (o == layouts[i]) return static_cast<Layout>(i);
  return {};
}

bool format_from(PyObject* o, MemoryFormat& f) {
  if (!nb::isinstance<Format>(nb::handle(o))) return false;
  f = nb::inst_ptr<Format>(nb::handle(o))->value;
  return true;
}

void define_types(nb::module_& m) {
  make_size(m);
  make_dtypes(m);
  make_device(m);
  nb::class_<Word>(m, "layout", "How a tensor's values are kept: torch.strided, torch.sparse_coo, torch.sparse_csr ...")
      .def("__repr__", [](const Word& n) { return "torch." + n.text; })
      .def("__reduce__", [](const Word& n) { return n.text; });
  for (size_t i = 0; i < layouts.size(); ++i) {
    const char* const name = name_of(static_cast<Layout>(i));
    m.attr(name) = nb::cast(Word{name});
    layouts[i] = PyObject_GetAttrString(m.ptr(), name);
  }
  m.attr("jagged") = nb::cast(Word{"jagged"});  // for naru.nested; no function of the core accepts it
  nb::class_<Format>(m, "memory_format", "The order in which a tensor's elements lie: torch.contiguous_format, torch.channels_last ...")
      .def("__repr__", [](const Format& n) { return "torch." + n.text; })
      .def("__reduce__", [](const Format& n) { return n.text; });
  constexpr std::pair<const char*, MemoryFormat> kFormats[] = {{"contiguous_format", MemoryFormat::Contiguous},
                                                               {"preserve_format", MemoryFormat::Preserve},
                                                               {"channels_last", MemoryFormat::ChannelsLast},
                                                               {"channels_last_3d", MemoryFormat::ChannelsLast3d}};
  for (const auto& [name, value] : kFormats) m.attr(name) = nb::cast(Format{{name}, value});
  def(kFunction, "get_default_dtype", "", "The type of floating-point results of integers and of Python floats.",
      [] { return default_dtype(); });
  def(kFunction, "set_default_dtype", "d", "Sets the default dtype; TypeError unless it is a floating-point type.",
      [](DType d) { set_default_dtype(d); });
  def(kFunction, "get_default_device", "", "The device of new tensors where none is named.", [] { return default_device(); });
  def(kFunction, "set_default_device", "device", "Sets the device of new tensors where none is named (None: cpu).",
      [](std::optional<Device> device) { set_default_device(device ? std::optional(runtime::resolve(*device)) : std::nullopt); });
  def(kFunction, "promote_types", "type1, type2", "The type that holds both.", [](DType a, DType b) { return promote(a, b); });
  def(kFunction, "can_cast", "from_, to", "Whether promotion may turn one type into the other: no float to integer, no integer to bool.",
      [](DType from, DType to) { return category_of(from) <= category_of(to); });
}

}  // namespace naru::py
