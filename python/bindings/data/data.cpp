// Tensors from Python data: nested sequences, NumPy arrays, numbers.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "naru/autograd.h"
#include "object/tensor_object.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru::py {
namespace {

// --- nested sequences ---------------------------------------------------------------------------------------------------------------

struct Found {
  bool any = false;
  DType type = DType::Bool;
  void add(DType t) {
    type = any ? promote(type, t) : t;
    any = true;
  }
};

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

// Converts other sequences (range, arrays in lists, user-defined ones) to a list; null for anything else.
nb::object as_list(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || !PySequence_Check(o)) return {};
  if (PyObject* list = PySequence_List(o)) return nb::steal(list);
  PyErr_Clear();
  return {};
}

// The dtype of a number; throws for other objects.
DType number_type(PyObject* o) {
  if (Py_TYPE(o) == &PyFloat_Type) return default_dtype();
  if (PyBool_Check(o)) return DType::Bool;
  if (PyLong_Check(o)) return DType::I64;
  if (is_tensor(o)) return tensor_of(o).dtype();
  const NumPy& np = numpy();
  if (np.generic && PyObject_TypeCheck(o, np.generic)) {
    static std::map<PyTypeObject*, DType> known;  // NumPy's scalar types live as long as NumPy
    if (const auto it = known.find(Py_TYPE(o)); it != known.end()) return it->second;
    nb::object zero_dim = nb::module_::import_("numpy").attr("asarray")(nb::borrow(o));
    return known[Py_TYPE(o)] = from_array(zero_dim.ptr()).dtype();
  }
  if (is_array(o)) return from_array(o).dtype();  // 0-d: other arrays are treated as lists here
  if (PyFloat_Check(o)) return default_dtype();
  if (PyUnicode_Check(o)) fail(PyExc_TypeError, "new(): invalid data type 'str'");
  if (PyComplex_Check(o)) return complex_of(default_dtype());
  if (PyIndex_Check(o)) return DType::I64;
  if (is_sequence(o))
    fail(PyExc_TypeError, fmt::format("'{}' object cannot be interpreted as an integer: the sequence nests deeper here than at its start",
                                      Py_TYPE(o)->tp_name));
  fail(PyExc_RuntimeError, std::string("Could not infer dtype of ") + Py_TYPE(o)->tp_name);
}

// Elements may run Python code (__float__, __index__, __len__ ...) that changes the lists being read. So every item is held while it is
// read, and a list must keep its length.
class Filler {
 public:
  // The sizes are those of the first elements at each level; all others must agree.
  Filler(PyObject* data, std::optional<DType> wanted) {
    measure(data);
    Dims at_least_one = sizes_;
    for (int64_t& n : at_least_one) n = std::max<int64_t>(n, 1);
    if (checked_product(at_least_one) > kMost)
      fail(PyExc_RuntimeError,
           fmt::format("a sequence of {} elements is too large for any memory (shape {})", checked_product(at_least_one), sizes_.str()));
    Found found;
    if (!wanted) find(data, 0, found);
    wanted_ = wanted ? *wanted : found.any ? found.type : default_dtype();
    type_ = is_float8(wanted_) ? DType::F32 : wanted_;
  }
  Tensor make(PyObject* data) {
    Tensor t = empty(sizes_, Options(type_, Device(DeviceType::Cpu)));
    t.impl()->origin.op = t.impl()->storage->origin.op = "tensor";
    if (t.numel() == 0) {
      check_lengths(data, 0);
      return converted(t);
    }
    at_ = static_cast<char*>(t.data_ptr());
    fill(data, 0);
    return converted(t);
  }

 private:
  Tensor converted(const Tensor& t) const {
    if (type_ == wanted_) return t;
    const NoGrad off;
    return t.to(wanted_);
  }
  // Lists and tuples as they are; other sequences are converted to lists once and cached.
  PyObject* listed(PyObject* o) {
    if (is_sequence(o)) return o;
    if (const auto it = lists_.find(o); it != lists_.end()) return it->second.second.ptr();
    nb::object list = is_tensor(o) && tensor_of(o).numel() == 1 ? nb::object() : as_list(o);
    if (!list.is_valid()) return nullptr;
    return lists_.emplace(o, std::pair(nb::borrow(o), list)).first->second.second.ptr();
  }

  void measure(PyObject* data) {
    nb::object held = nb::borrow(data);
    while (PyObject* list = PyUnicode_Check(held.ptr()) ? nullptr : listed(held.ptr())) {
      sizes_.push_back(PySequence_Fast_GET_SIZE(list));
      if (sizes_.size() > kMostDims) fail(PyExc_ValueError, std::string("too many dimensions '") + Py_TYPE(held.ptr())->tp_name + "'");
      if (PySequence_Fast_GET_SIZE(list) == 0) return;
      held = nb::borrow(PySequence_Fast_GET_ITEM(list, 0));
    }
    PyObject* o = held.ptr();
    if (PyUnicode_Check(o) && !sizes_.empty()) fail(PyExc_ValueError, std::string("too many dimensions '") + Py_TYPE(o)->tp_name + "'");
    if (is_tensor(o) && tensor_of(o).numel() != 1) fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }

  void check_length(PyObject* list, size_t depth) const {
    if (PySequence_Fast_GET_SIZE(list) != sizes_[depth])
      fail(PyExc_ValueError,
           fmt::format("expected sequence of length {} at dim {} (got {})", sizes_[depth], depth, PySequence_Fast_GET_SIZE(list)));
  }
  PyObject* list_at(PyObject* o, size_t depth) {
    PyObject* list = listed(o);
    if (!list)
      fail(PyExc_TypeError, fmt::format("expected a sequence of length {} at dim {} (got {})", sizes_[depth], depth, Py_TYPE(o)->tp_name));
    check_length(list, depth);
    return list;
  }
  // Calls f for the expected number of items, even if the list is changed meanwhile.
  template <class F>
  void each(PyObject* o, size_t depth, F f) {
    const nb::object list = nb::borrow(list_at(o, depth));
    if (++lists_read_ % kLook == 0) check(PyErr_CheckSignals());
    for (int64_t i = 0; i < sizes_[depth]; ++i) f(item_at(list.ptr(), i));
  }
  // For sequences without elements; visits each list only once, however often it occurs.
  void check_lengths(PyObject* o, size_t depth) {
    if (depth == sizes_.size() || !seen_.insert({o, depth}).second) return;
    each(o, depth, [&](PyObject* item) {
      const nb::object held = nb::borrow(item);
      check_lengths(item, depth + 1);
    });
  }

  void find(PyObject* o, size_t depth, Found& found) {
    if (depth == sizes_.size()) {
      found.add(number_type(o));
      return;
    }
    each(o, depth, [&](PyObject* item) {
      if (depth + 1 == sizes_.size()) {
        // Shortcut: a Python float adds nothing to a floating-point type already found; only float64 and complex types exceed the default
        // dtype.
        if (Py_TYPE(item) == &PyFloat_Type && found.any && is_floating(found.type)) return;
        if (Py_TYPE(item) == &PyLong_Type && found.any && promote(found.type, DType::I64) == found.type) return;
      }
      const nb::object held = nb::borrow(item);
      find(item, depth + 1, found);
    });
  }

  template <class T>
  void put(T v) {
    std::memcpy(at_, &v, sizeof v);
    at_ += sizeof v;
  }
  void put_part(DType part, double v) {
    if (part == DType::F64) return put(v);
    if (part == DType::F32) return put(static_cast<float>(v));
    put(float_to_half(static_cast<float>(v)));
  }
  void put_complex(const Scalar& v) {
    if (!is_complex(type_)) return put_float(v.to_double());
    put_part(real_of(type_), v.real());
    put_part(real_of(type_), v.imag());
  }
  void put_float(double v) {
    if (is_complex(type_)) return put_complex(v);
    if (is_wide_unsigned(type_)) return put_unsigned(v);
    switch (type_) {
      case DType::F64:
        return put(v);
      case DType::F32:
        return put(static_cast<float>(v));
      case DType::F16:
        return put(float_to_half(static_cast<float>(v)));
      case DType::BF16:
        return put(float_to_bfloat(static_cast<float>(v)));
      case DType::Bool:
        return put(static_cast<uint8_t>(v != 0));
      default:
        break;
    }
    // Unlike integers, negative floats do not wrap around in uint8.
    if (!(v >= -0x1p63 && v < 0x1p63) || (type_ == DType::U8 && v < 0))
      fail(PyExc_RuntimeError, fmt::format("value cannot be converted to type {} without overflow: {}", name_of(type_), v));
    put_int(static_cast<int64_t>(v));
  }
  // Like C++ conversions: truncates fractions, wraps negative numbers around.
  void put_unsigned(const Scalar& number) {
    Scalar s;
    try {
      s = ops::converted(number, type_);
    } catch (const RuntimeError&) {
      fail(PyExc_RuntimeError, fmt::format("value cannot be converted to type {} without overflow", name_of(type_)));
    }
    if (type_ == kUInt16) return put(static_cast<uint16_t>(s.to_bits()));
    if (type_ == kUInt32) return put(static_cast<uint32_t>(s.to_bits()));
    put(s.to_bits());
  }
  void put_int(int64_t v) {
    if (is_wide_unsigned(type_)) return put_unsigned(v);
    switch (type_) {
      case DType::I64:
        return put(v);
      case DType::I32:
        return put(ranged<int32_t>(v));
      case DType::I16:
        return put(ranged<int16_t>(v));
      case DType::I8:
        return put(ranged<int8_t>(v));
      case DType::U8:
        return put(ranged<uint8_t>(v));
      case DType::Bool:
        return put(static_cast<uint8_t>(v != 0));
      default:
        return put_float(static_cast<double>(v));
    }
  }
  template <class T>
  T ranged(int64_t v) const {
    // Negative numbers wrap around in uint8, as in PyTorch.
    const int64_t low = std::is_same_v<T, uint8_t> ? -255 : std::numeric_limits<T>::min();
    if (v < low || v > std::numeric_limits<T>::max())
      fail(PyExc_RuntimeError, fmt::format("value cannot be converted to type {} without overflow: {}", name_of(type_), v));
    return static_cast<T>(v);
  }

  void fill(PyObject* o, size_t depth) {
    if (depth == sizes_.size()) {
      fill_one(o);
      return;
    }
    each(o, depth, [&](PyObject* item) {
      if (depth + 1 == sizes_.size() && Py_TYPE(item) == &PyFloat_Type) return put_float(PyFloat_AS_DOUBLE(item));
      const nb::object held = nb::borrow(item);
      fill(item, depth + 1);
    });
  }
  void fill_one(PyObject* o) {
    if (is_array(o)) {
      const nb::object item = nb::steal(check(PyObject_CallMethod(o, "item", nullptr)));
      return fill_one(item.ptr());
    }
    Scalar s;
    if (PyLong_Check(o) && !PyBool_Check(o)) {
      int overflow = 0;
      const int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow && is_inexact(type_)) return put_float(PyLong_AsDouble(o));
      if (overflow > 0 && type_ == kUInt64) {
        const unsigned long long u = PyLong_AsUnsignedLongLong(o);
        if (PyErr_Occurred()) nb::raise_python_error();
        return put(uint64_t{u});
      }
      if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
      return put_int(v);
    }
    if (!scalar_from(o, s)) {
      if (is_tensor(o)) fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
      int64_t v = 0;
      if (int_from(o, v)) return put_int(v);
      if (PyObject* f = PyNumber_Check(o) && !PyComplex_Check(o) ? PyNumber_Float(o) : nullptr) {
        nb::object held = nb::steal(f);
        return put_float(PyFloat_AS_DOUBLE(f));
      }
      PyErr_Clear();
      number_type(o);  // throws with the right text
      fail(PyExc_TypeError, fmt::format("must be real number, not {}", Py_TYPE(o)->tp_name));
    }
    if (s.is_complex())
      put_complex(s);
    else if (s.is_float())
      put_float(s.to_double());
    else if (s.is_unsigned())
      is_inexact(type_) ? put_float(s.to_double()) : put_unsigned(s);
    else
      put_int(s.to_int());
  }

  static constexpr size_t kMostDims = 128;            // as in PyTorch
  static constexpr int64_t kMost = int64_t{1} << 40;  // elements; lists that contain a list many times can exceed any memory
  static constexpr int64_t kLook = 4096;              // lists between checks for signals

  Dims sizes_;
  DType wanted_ = DType::F32, type_ = DType::F32;  // numbers are written as type_, then converted
  char* at_ = nullptr;
  int64_t lists_read_ = 0;
  std::unordered_map<PyObject*, std::pair<nb::object, nb::object>> lists_;  // other sequences, converted to lists
  std::set<std::pair<PyObject*, size_t>> seen_;
};

// NumPy converts a list of arrays: one loop instead of one per element.
bool starts_with_array(PyObject* data) {
  for (int depth = 0; is_sequence(data) && depth < 64; ++depth) {
    if (PySequence_Fast_GET_SIZE(data) == 0) return false;
    data = PySequence_Fast_GET_ITEM(data, 0);
  }
  return is_array(data);
}

Tensor moved(Tensor t, std::optional<DType> dtype, std::optional<Device> device, bool copy) {
  if (!device) {
    const Device d = default_device();
    if (!(d == t.device())) device = d;
  }
  return t.to(device, dtype, false, copy);
}

}  // namespace

Tensor tensor_from(PyObject* data, std::optional<DType> dtype, std::optional<Device> device, bool share) {
  if (is_tensor(data)) {
    Tensor t = tensor_of(data);
    if (!share) {
      NoGrad off;
      return t.detach().to(device, dtype, false, true);
    }
    return t.to(device, dtype, false, false);
  }
  if (is_array(data)) return moved(from_array(data, share), dtype, device, !share);
  const bool plain = PyFloat_CheckExact(data) || PyLong_CheckExact(data) || PyList_CheckExact(data) || PyTuple_CheckExact(data);
  if (!plain && PyObject_HasAttrString(data, "__array__") && !PyObject_TypeCheck(data, numpy(true).generic)) {
    nb::object array = nb::module_::import_("numpy").attr("asarray")(nb::borrow(data));
    if (is_array(array.ptr())) return moved(from_array(array.ptr()), dtype, device, true);
  }
  if (!plain && PyObject_HasAttrString(data, "_untyped_storage")) {  // a storage: use its memory
    const Tensor all = tensor_of(nb::object(nb::handle(data).attr("_tensor")()).ptr());
    const Options options(dtype.value_or(nb::hasattr(data, "dtype") ? all.dtype() : default_dtype()), all.device());
    return moved(tensor_of(nb::object(wrapped(empty({0}, options)).attr("set_")(nb::handle(data))).ptr()), std::nullopt, device, false);
  }
  if (starts_with_array(data)) {
    nb::object array = nb::module_::import_("numpy").attr("array")(nb::borrow(data));
    if (!is_array(array.ptr())) throw TypeError("tensor(): NumPy makes no array of a {}", Py_TYPE(data)->tp_name);
    return moved(from_array(array.ptr()), dtype, device, false);
  }
  if (PyUnicode_Check(data)) throw TypeError("new(): invalid data type 'str'");
  Filler filler(data, dtype);
  return moved(filler.make(data), std::nullopt, device, false);
}

namespace {

Tensor as_array(PyObject* data, std::optional<DType> dtype, std::optional<Device> device, std::optional<bool> copy,
                std::optional<bool> requires_grad) {
  Tensor t;
  if (is_tensor(data) || is_array(data)) {
    const Tensor own = is_tensor(data) ? tensor_of(data) : from_array(data, !copy || !*copy);
    if (copy && !*copy) {
      if (device && device->type != own.device().type)
        throw ValueError("can't alias tensor from device '{}' to '{}'.", own.device().str(), device->str());
      if (dtype && *dtype != own.dtype())
        throw ValueError("can't alias tensor with dtype '{}' into dtype '{}'.", ops::torch_name(own.dtype()), ops::torch_name(*dtype));
    }
    t = is_tensor(data) ? own.to(device, dtype, false, copy.value_or(false)) : moved(own, dtype, device, copy.value_or(false));
  } else if (PyCapsule_CheckExact(data)) {
    t = moved(from_capsule(data), dtype, device, copy.value_or(false));
  } else if (PyObject_CheckBuffer(data) && !PyObject_HasAttrString(data, "__array__")) {
    t = moved(from_buffer(data, dtype ? *dtype : type_of_buffer(data), -1, 0), std::nullopt, device, copy.value_or(false));
  } else {
    if (copy && !*copy) throw ValueError("can't alias arbitrary sequence into a tensor. (got {})", Py_TYPE(data)->tp_name);
    t = tensor_from(data, dtype, device, !copy.value_or(false));
  }
  if (requires_grad && !*requires_grad && t.requires_grad()) return t.detach();
  if (requires_grad && *requires_grad && !t.requires_grad()) {
    if (!is_inexact(t.dtype())) throw RuntimeError("Only Tensors of floating point and complex dtype can require gradients");
    t.requires_grad_();
  }
  return t;
}

}  // namespace

void define_data() {
  define_arrays();
  define_dlpack();
  def(kFunction, "_legacy_tensor", "dtype, device, args", "What torch.FloatTensor(*args) and its like give.",
      [](DType dtype, Device device, PyObject* args) { return legacy_tensor(dtype, device, args); });
  def(kFunction, "tensor", "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
      "A tensor with a copy of the data: a number, nested sequences of numbers, an array or a tensor. The dtype is "
      "found from the data: bool, "
      "int64, or the default floating-point type. ValueError where the lengths of sequences disagree.",
      [](PyObject* data, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad, bool pin) -> PyObject* {
        if (is_tensor(data))
          check(PyErr_WarnEx(PyExc_UserWarning,
                             "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                             "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                             1));
        Tensor t = tensor_from(data, dtype, device);
        if (pin) t = t.pin_memory();
        if (requires_grad) {
          if (!is_inexact(t.dtype())) throw RuntimeError("Only Tensors of floating point and complex dtype can require gradients");
          t.requires_grad_();
        }
        return wrap(t);
      });
  def(kFunction, "as_tensor", "data, dtype=None, device=None",
      "The data as a tensor: itself if it is one of that dtype and device, over the same memory if it is an array, "
      "else a copy.",
      [](PyObject* data, std::optional<DType> dtype, std::optional<Device> device) -> PyObject* {
        return wrap(tensor_from(data, dtype, device, true));
      });
  def(kFunction, "asarray", "obj, *, dtype=None, device=None, copy=None, requires_grad=None",
      "The same as as_tensor. copy: True copies in any case, False never (ValueError where it must be).",
      [](PyObject* data, std::optional<DType> dtype, std::optional<Device> device, std::optional<bool> copy,
         std::optional<bool> requires_grad) -> PyObject* { return wrap(as_array(data, dtype, device, copy, requires_grad)); });
  def(kFunction, "from_numpy", "ndarray", "A tensor over the memory of a NumPy array: writes to one are seen in the other.",
      [](PyObject* array) -> PyObject* { return wrap(from_array(array, true)); });
  def(kMethod, "new_tensor", "input, data, *, dtype=None, device=None, requires_grad=False",
      "A tensor with a copy of the data, of this tensor's dtype and on its device unless others are named.",
      [](const Tensor& self, PyObject* data, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) -> PyObject* {
        Tensor t = tensor_from(data, dtype ? *dtype : self.dtype(), device ? *device : self.device());
        if (requires_grad) t.requires_grad_();
        return wrap(t);
      });
  def(kFunction, "frombuffer", "buffer, *, dtype, count=-1, offset=0, requires_grad=False", "A 1-D tensor over the memory of a buffer.",
      [](PyObject* buffer, DType dtype, int64_t count, int64_t offset, bool requires_grad) -> PyObject* {
        Tensor t = from_buffer(buffer, dtype, count, offset);
        if (requires_grad) t.requires_grad_();
        return wrap(t);
      });
}

}  // namespace naru::py
