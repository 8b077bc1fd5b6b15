// Elements as Python numbers: tolist() and item().
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "object/tensor_object.h"

namespace naru::py {
namespace {

template <class T, class F>
PyObject* complex_number(std::array<T, 2> parts, F number) {
  return PyComplex_FromDoubles(number(parts[0]), number(parts[1]));
}

PyObject* list_of(const char* at, const Tensor& t, size_t depth) {
  const Dims& sizes = t.sizes();
  const Dims& strides = t.strides();
  const auto size = static_cast<int64_t>(t.element_size());
  if (depth == sizes.size()) {
    const auto read = [&]<class T>(T) {
      T v;
      std::memcpy(&v, at, sizeof v);
      return v;
    };
    const auto half = [](uint16_t bits) { return static_cast<double>(half_to_float(bits)); };
    if (t.dtype() == kComplex128) return complex_number(read(std::array<double, 2>{}), [](double v) { return v; });
    if (t.dtype() == kComplex64) return complex_number(read(std::array<float, 2>{}), [](float v) { return static_cast<double>(v); });
    if (t.dtype() == kComplex32) return complex_number(read(std::array<uint16_t, 2>{}), half);
    if (t.dtype() == kUInt16) return PyLong_FromLong(read(uint16_t{}));
    if (t.dtype() == kUInt32) return PyLong_FromUnsignedLong(read(uint32_t{}));
    if (t.dtype() == kUInt64) return PyLong_FromUnsignedLongLong(read(uint64_t{}));
    switch (t.dtype()) {
      case DType::Bool:
        return PyBool_FromLong(read(uint8_t{}) != 0);
      case DType::U8:
        return PyLong_FromLong(read(uint8_t{}));
      case DType::I8:
        return PyLong_FromLong(read(int8_t{}));
      case DType::I16:
        return PyLong_FromLong(read(int16_t{}));
      case DType::I32:
        return PyLong_FromLong(read(int32_t{}));
      case DType::I64:
        return PyLong_FromLongLong(read(int64_t{}));
      case DType::F16:
        return PyFloat_FromDouble(half_to_float(read(uint16_t{})));
      case DType::BF16:
        return PyFloat_FromDouble(bfloat_to_float(read(uint16_t{})));
      case DType::F32:
        return PyFloat_FromDouble(read(float{}));
      default:
        return PyFloat_FromDouble(read(double{}));
    }
  }
  nb::object list = nb::steal(PyList_New(sizes[depth]));
  if (!list.is_valid()) fail(PyExc_MemoryError, fmt::format("tolist: a list of {} entries does not fit into memory", sizes[depth]));
  for (int64_t i = 0; i < sizes[depth]; ++i) PyList_SET_ITEM(list.ptr(), i, check(list_of(at + i * strides[depth] * size, t, depth + 1)));
  return list.release().ptr();
}

}  // namespace

PyObject* tolist(const Tensor& t) {
  Tensor host = t.detach();
  if (is_float8(t.dtype())) host = host.to(DType::F32);
  if (!t.device().is_cpu()) {
    GilRelease scope;
    host = host.cpu();
    host.data_ptr();
  }
  return list_of(static_cast<const char*>(host.data_ptr()), host, 0);
}

Scalar item_of(const Tensor& t) {
  if (t.device().is_cpu()) return t.item();
  const Tensor held = t;
  GilRelease scope;
  return held.item();
}

}  // namespace naru::py
