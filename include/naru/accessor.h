// Access to elements on the host: accessors for any strides, contiguous spans, and mdspan if the library has it. Included by naru/tensor.h.
//
//   auto a = x.accessor<float, 2>();   a[i][j] = 1;
//   for (float& v : x.span<float>()) v *= 2;
//
// Each waits for pending work on the tensor once, when it is created. While it is used, the tensor must stay alive and no operator may
// write it.
#pragma once

#include <cstddef>
#include <span>

#include "naru/tensor.h"

#if __has_include(<mdspan>) && __cplusplus > 202002L
#include <mdspan>
#endif

namespace naru {

namespace detail {
// Throw RuntimeError unless the tensor is on cpu, has `rank` dimensions, and is contiguous, respectively.
void require_host(const Tensor& t, const char* op);
void require_rank(const Tensor& t, size_t rank);
void require_row_major(const Tensor& t, const char* op);
}  // namespace detail

template <class T, size_t N>
class Accessor {
 public:
  Accessor(T* data, const int64_t* sizes, const int64_t* strides) noexcept : data_(data) {
    for (size_t d = 0; d < N; ++d) sizes_[d] = sizes[d], strides_[d] = strides[d];
  }
  int64_t size(size_t dim) const noexcept { return sizes_[dim]; }
  int64_t stride(size_t dim) const noexcept { return strides_[dim]; }  // elements
  T* data() const noexcept { return data_; }
  // No bounds check.
  decltype(auto) operator[](int64_t i) const noexcept {
    if constexpr (N == 1)
      return (data_[i * strides_[0]]);
    else
      return Accessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  int64_t sizes_[N], strides_[N];
};

template <class T, size_t N>
Accessor<T, N> Tensor::accessor(SourceLocation where) const {
  static_assert(N > 0, "a tensor without dimensions has item()");
  return detail::with_location(where, [&]() -> Accessor<T, N> {
    detail::require_host(*this, "accessor");
    detail::require_rank(*this, N);
    return {data<T>(where), sizes().data(), strides().data()};
  });
}

template <class T>
std::span<T> Tensor::span(SourceLocation where) const {
  return detail::with_location(where, [&]() -> std::span<T> {
    detail::require_host(*this, "span");
    detail::require_row_major(*this, "span");
    return {data<T>(where), static_cast<size_t>(numel())};
  });
}

#ifdef __cpp_lib_mdspan
template <class T, size_t N>
auto mdspan_of(const Tensor& t) {
  detail::require_host(t, "mdspan_of");
  detail::require_rank(t, N);
  std::array<int64_t, N> sizes, strides;
  for (size_t d = 0; d < N; ++d) sizes[d] = t.sizes()[d], strides[d] = t.strides()[d];
  using Sizes = std::dextents<int64_t, N>;
  return std::mdspan<T, Sizes, std::layout_stride>(t.data<T>(), std::layout_stride::mapping<Sizes>(Sizes(sizes), strides));
}
#endif

}  // namespace naru
