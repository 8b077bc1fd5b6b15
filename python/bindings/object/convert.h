// Conversion of Python arguments and results. Arg<T>::load reads one argument; it returns false for another type, so that the next overload
// can try.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "object/object.h"

namespace naru::py {

using OptTensor = std::optional<Tensor>;
using OptInt = std::optional<int64_t>;
using OptType = std::optional<DType>;
using OptText = std::optional<std::string_view>;
inline Tensor or_undefined(const OptTensor& t) { return t.value_or(Tensor()); }
inline Options in_format(Options o, std::optional<MemoryFormat> format) {
  o.memory_format = format;
  return o;
}

// Numbers: bool, int, float, NumPy scalars, and tensors with one element if `tensors`. Throws for integers beyond 64 bits.
bool scalar_from(PyObject* o, Scalar& s, bool tensors = true);
// The same for an argument, except tensors that require grad: the gradient would be lost.
bool number_from(PyObject* o, Scalar& s);
// A Python int. Throws OverflowError beyond 64 bits.
int64_t long_value(PyObject* o);
// Item i of a list or tuple, as a borrowed reference: take a reference before calling its methods. Throws RuntimeError if the list has
// become too short.
PyObject* item_at(PyObject* list, Py_ssize_t i);
// An integer, also through __index__; not bool or float.
bool int_from(PyObject* o, int64_t& v);
// A tuple, list or torch.Size of integers. Throws RuntimeError if an item's __index__ shortens the list meanwhile.
bool dims_from(PyObject* o, Dims& d);
bool tensors_from(PyObject* o, std::vector<Tensor>& list);

template <class T>
struct Arg;

template <>
struct Arg<Tensor> {
  static constexpr const char* kName = "Tensor";
  static constexpr const char* kHint = "Tensor";
  const Tensor* value = nullptr;
  Tensor held;
  bool load(PyObject* const* o) {
    if (!is_tensor(*o)) return false;
    value = &tensor_of(*o);
    return true;
  }
  // Takes a reference before the GIL is released, because another thread may then assign the object's data.
  void hold() { held = *value, value = &held; }
  const Tensor& get() { return *value; }
  int64_t work() const { return value->numel(); }
};

template <>
struct Arg<Operand> {
  static constexpr const char* kName = "Tensor";
  static constexpr const char* kHint = "Tensor | builtins.float | builtins.bool";
  std::optional<Operand> value;
  Tensor held;
  void hold() {
    if (value->is_tensor()) held = value->tensor(), value.emplace(held);
  }
  bool load(PyObject* const* o) {
    if (is_tensor(*o)) {
      value.emplace(tensor_of(*o));
      return true;
    }
    Scalar s;
    if (!scalar_from(*o, s, false)) return false;
    value.emplace(s);
    return true;
  }
  const Operand& get() { return *value; }
  int64_t work() const { return value->is_tensor() ? value->tensor().numel() : 0; }
};

template <>
struct Arg<Scalar> {
  static constexpr const char* kName = "Number";
  static constexpr const char* kHint = "builtins.float | builtins.bool";
  Scalar value;
  bool load(PyObject* const* o) { return number_from(*o, value); }
  Scalar get() { return value; }
};

template <>
struct Arg<int64_t> {
  static constexpr const char* kName = "int";
  static constexpr const char* kHint = "builtins.int";
  int64_t value = 0;
  bool load(PyObject* const* o) { return int_from(*o, value); }
  int64_t get() { return value; }
};

template <>
struct Arg<double> {
  static constexpr const char* kName = "float";
  static constexpr const char* kHint = "builtins.float";
  Scalar value;
  bool load(PyObject* const* o) { return number_from(*o, value) && !value.is_complex(); }
  double get() { return value.to_double(); }
};

template <>
struct Arg<bool> {
  static constexpr const char* kName = "bool";
  static constexpr const char* kHint = "builtins.bool";
  bool value = false;
  bool load(PyObject* const* o);
  bool get() { return value; }
};

template <>
struct Arg<std::string_view> {
  static constexpr const char* kName = "str";
  static constexpr const char* kHint = "str";
  std::string_view value;
  bool load(PyObject* const* o);
  std::string_view get() { return value; }
};

template <>
struct Arg<DType> {
  static constexpr const char* kName = "torch.dtype";
  static constexpr const char* kHint = "_dtype";
  DType value = DType::F32;
  bool load(PyObject* const* o) { return dtype_from(*o, value); }
  DType get() { return value; }
};

template <>
struct Arg<Device> {
  static constexpr const char* kName = "torch.device";
  static constexpr const char* kHint = "_device | str | builtins.int";
  Device value;
  bool load(PyObject* const* o) { return device_from(*o, value); }
  Device get() { return value; }
};

template <>
struct Arg<MemoryFormat> {
  static constexpr const char* kName = "torch.memory_format";
  static constexpr const char* kHint = "memory_format";
  MemoryFormat value = MemoryFormat::Preserve;
  bool load(PyObject* const* o) { return format_from(*o, value); }
  MemoryFormat get() { return value; }
};

// A list of integers. A single integer counts as a list.
template <>
struct Arg<Dims> {
  static constexpr const char* kName = "tuple of ints";
  static constexpr const char* kHint = "builtins.int | Sequence[builtins.int]";
  Dims value;
  bool load(PyObject* const* o) {
    int64_t one = 0;
    if (dims_from(*o, value)) return true;
    if (PyFloat_Check(*o) || !int_from(*o, one)) return false;
    value = {one};
    return true;
  }
  const Dims& get() { return value; }
};

// Only tuples and lists of integers, for overloads in which a single integer means something else.
struct Sequence {
  Dims dims;
};
template <>
struct Arg<Sequence> {
  static constexpr const char* kName = "tuple of ints";
  static constexpr const char* kHint = "Sequence[builtins.int]";
  Sequence value;
  bool load(PyObject* const* o) { return dims_from(*o, value.dims); }
  const Sequence& get() { return value; }
};

template <>
struct Arg<std::vector<Tensor>> {
  static constexpr const char* kName = "tuple of Tensors";
  static constexpr const char* kHint = "Sequence[Tensor]";
  std::vector<Tensor> value;
  bool load(PyObject* const* o) { return tensors_from(*o, value); }
  const std::vector<Tensor>& get() { return value; }
};

template <>
struct Arg<Generator*> {
  static constexpr const char* kName = "Generator";
  static constexpr const char* kHint = "Generator | None";
  Generator* value = nullptr;
  bool load(PyObject* const* o);
  Generator* get() { return value; }
};

// Any object, as a borrowed reference.
template <>
struct Arg<PyObject*> {
  static constexpr const char* kName = "object";
  static constexpr const char* kHint = "Any";
  PyObject* value = nullptr;
  bool load(PyObject* const* o) {
    value = *o;
    return true;
  }
  PyObject* get() { return value; }
};

// Accepted for compatibility with PyTorch, and ignored (memory_format, layout ...).
struct Ignored {};
template <>
struct Arg<Ignored> {
  static constexpr const char* kName = "object";
  static constexpr const char* kHint = "Any";
  bool load(PyObject* const*) { return true; }
  Ignored get() { return {}; }
};

// "none", "mean" or "sum".
template <>
struct Arg<Reduction> {
  static constexpr const char* kName = "str";
  static constexpr const char* kHint = "str";
  Reduction value = Reduction::Mean;
  bool load(PyObject* const* o);
  Reduction get() { return value; }
};

template <class T>
struct Arg<std::optional<T>> {
  static constexpr const char* kName = Arg<T>::kName;
  static constexpr const char* kHint = Arg<T>::kHint;
  static constexpr bool kOptional = true;
  Arg<T> inner;
  bool present = false;
  bool load(PyObject* const* o) {
    if (*o == Py_None) return true;
    present = true;
    return inner.load(o);
  }
  void hold() {
    if constexpr (requires { inner.hold(); })
      if (present) inner.hold();
  }
  std::optional<T> get() { return present ? std::optional<T>(inner.get()) : std::nullopt; }
};
template <>
struct Arg<OptionalDims> : Arg<std::optional<Dims>> {
  OptionalDims get() { return present ? OptionalDims(inner.get()) : OptionalDims(); }
};

// Five arguments: dtype, layout, device, pin_memory, requires_grad. Parameter lists write them as "@options".
template <>
struct Arg<Options> {
  static constexpr const char* kName = "torch.dtype";
  static constexpr const char* kHint = "_dtype | None";
  static constexpr int kSlots = 5;
  Options value;
  bool load(PyObject* const* o);
  const Options& get() { return value; }
};

// The same for functions that can also create sparse tensors.
struct LayoutOptions : Options {
  std::optional<Layout> layout;
};
template <>
struct Arg<LayoutOptions> {
  static constexpr const char* kName = "torch.dtype";
  static constexpr const char* kHint = "_dtype | None";
  static constexpr int kSlots = 5;
  LayoutOptions value;
  bool load(PyObject* const* o);
  const LayoutOptions& get() { return value; }
};

template <class A>
constexpr int slots_of() {
  if constexpr (requires { A::kSlots; })
    return A::kSlots;
  else
    return 1;
}

// --- results ------------------------------------------------------------------------------------------------------------------------

// Result type of in-place functions: returns the first argument.
struct Self {};

// A pair that becomes torch.return_types.<kind>, with named fields. Constructed without the GIL, so the names must be string literals.
struct Named {
  const char* kind;
  Tensor first, second;
  const char* first_name = "values";
  const char* second_name = "indices";
};
inline Named named(const char* name, std::pair<Tensor, Tensor> pair) { return {name, pair.first, pair.second}; }

// The same for any number of tensors.
struct NamedList {
  const char* kind;
  std::vector<std::pair<const char*, Tensor>> fields;
};

inline PyObject* to_python(const Tensor& t) { return wrap(t); }
inline PyObject* to_python(bool v) { return PyBool_FromLong(v); }
inline PyObject* to_python(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* to_python(double v) { return PyFloat_FromDouble(v); }
inline PyObject* to_python(const Scalar& s) { return scalar_object(s); }
inline PyObject* to_python(const std::string& s) { return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())); }
inline PyObject* to_python(DType t) { return dtype_object(t); }
inline PyObject* to_python(Device d) { return device_object(d); }
inline PyObject* to_python(const Dims& d) { return size_object(d); }
inline PyObject* to_python(PyObject* o) { return o; }
inline PyObject* to_python(nb::object o) { return o.release().ptr(); }
PyObject* to_python(const Named& n);
PyObject* to_python(const NamedList& n);
// Converts a list or tuple of tensors to torch.return_types.<kind>_out if `result` is a torch.return_types.<kind>; otherwise returns it as
// it is.
PyObject* with_fields_of(PyObject* result, PyObject* tensors);
PyObject* to_python(const std::pair<Tensor, Tensor>& pair);
PyObject* to_python(const std::vector<Tensor>& list);  // a tuple

template <class R>
struct Result {
  static constexpr const char* kHint = "Any";
};
template <>
struct Result<Tensor> {
  static constexpr const char* kHint = "Tensor";
};
template <>
struct Result<Self> {
  static constexpr const char* kHint = "Tensor";
};
template <>
struct Result<void> {
  static constexpr const char* kHint = "None";
};
template <>
struct Result<bool> {
  static constexpr const char* kHint = "builtins.bool";
};
template <>
struct Result<int64_t> {
  static constexpr const char* kHint = "builtins.int";
};
template <>
struct Result<double> {
  static constexpr const char* kHint = "builtins.float";
};
template <>
struct Result<std::string> {
  static constexpr const char* kHint = "str";
};
template <>
struct Result<DType> {
  static constexpr const char* kHint = "_dtype";
};
template <>
struct Result<Device> {
  static constexpr const char* kHint = "_device";
};
template <>
struct Result<Dims> {
  static constexpr const char* kHint = "Size";
};
template <>
struct Result<std::vector<Tensor>> {
  static constexpr const char* kHint = "tuple[Tensor, ...]";
};
template <>
struct Result<std::pair<Tensor, Tensor>> {
  static constexpr const char* kHint = "tuple[Tensor, Tensor]";
};
template <>
struct Result<NamedList> {
  static constexpr const char* kHint = "tuple[Tensor, ...]";
};
template <>
struct Result<Named> {
  static constexpr const char* kHint = "tuple[Tensor, Tensor]";
};

}  // namespace naru::py
