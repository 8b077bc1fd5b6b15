// from_blob: wraps external memory as a tensor without a copy. To copy it: from_data (naru/ops.h), tensor(std::span(...)). See also
// naru/interop/dlpack.h (exchange of tensors) and naru/interop/eigen.h.
//
//   std::vector<float> v(6);
//   Tensor t = from_blob(v.data(), {2, 3});                                      // v must outlive t and its views
//   Tensor u = from_blob(new float[6], {2, 3}, [](void* p) { delete[] static_cast<float*>(p); });
#pragma once

#include <type_traits>
#include <utility>

#include "naru/ops.h"
#include "naru/standard.h"

namespace naru {

using Deleter = std::function<void(void*)>;  // called with the memory's address when the last tensor that uses it is destroyed

namespace detail {
// Throws RuntimeError if the options specify another device, or a dtype that doesn't match the memory's element type.
Tensor blob(void* data, const Dims& sizes, const Dims* strides, Deleter deleter, const Options& options, DType type);

template <class T>
DType blob_type(const Options& o) {
  static_assert(!std::is_const_v<T>, "tensors are written to: copy constant memory with tensor(std::span(...)) or from_data");
  if constexpr (std::is_void_v<T>) {
    return o.dtype.value_or(default_dtype());
  } else {
    static_assert(has_dtype<T>(), "no dtype has elements of this type; pass a void* and name the dtype");
    const DType type = o.dtype.value_or(dtype_of<T>());
    if (!is_element_of<T>(type)) throw_wrong_element(type, dtype_of<T>());
    return type;
  }
}
}  // namespace detail

// T determines the dtype (for uint16_t: float16, unless options specify bfloat16); for void*, options.dtype or the default floating-point
// dtype. Strides are in elements and must not be negative (ValueError); by default the memory is row-major. On cpu.
template <class T>
Tensor from_blob(T* data, const Dims& sizes, const Options& options = {}) {
  return detail::blob(data, sizes, nullptr, {}, options, detail::blob_type<T>(options));
}
template <class T>
Tensor from_blob(T* data, const Dims& sizes, Deleter deleter, const Options& options = {}) {
  return detail::blob(data, sizes, nullptr, std::move(deleter), options, detail::blob_type<T>(options));
}
template <class T>
Tensor from_blob(T* data, const Dims& sizes, const Dims& strides, const Options& options = {}) {
  return detail::blob(data, sizes, &strides, {}, options, detail::blob_type<T>(options));
}
template <class T>
Tensor from_blob(T* data, const Dims& sizes, const Dims& strides, Deleter deleter, const Options& options = {}) {
  return detail::blob(data, sizes, &strides, std::move(deleter), options, detail::blob_type<T>(options));
}

}  // namespace naru
