// Conversion between tensors and xtensor expressions, for programs that use xtensor.
//
//   auto x = naru::xtensor_map<float>(t);      // an adaptor of any rank and any strides, without a copy; writes go to the tensor
//   Tensor t = naru::from_xtensor(2 * x + 1);  // a copy, in row-major order
#pragma once

#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>

#include "naru/interop/interop.h"

namespace naru {

// Throws RuntimeError if T is not t's element type or t is not on cpu. The map does not own the memory: t must outlive it.
template <class T>
auto xtensor_map(const Tensor& t) {
  detail::require_host(t, "xtensor_map");
  const std::vector<size_t> shape(t.sizes().begin(), t.sizes().end());
  const std::vector<std::ptrdiff_t> strides(t.strides().begin(), t.strides().end());
  // xtensor expects the number of elements here, whatever the strides.
  return xt::adapt(t.data<T>(), static_cast<size_t>(t.numel()), xt::no_ownership(), shape, strides);
}

// Copies the value of an xtensor expression; its element type is the dtype unless options specify one.
template <class E>
Tensor from_xtensor(const xt::xexpression<E>& expression, const Options& options = {}) {
  using T = typename E::value_type;
  const xt::xarray<T, xt::layout_type::row_major> rows = expression.derived_cast();
  Dims sizes;
  for (const auto n : rows.shape()) sizes.push_back(static_cast<int64_t>(n));
  return from_data(rows.data(), sizes, dtype_of<T>(), options);
}

}  // namespace naru
