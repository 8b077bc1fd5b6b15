// Conversion between tensors and Eigen matrices, for programs that use Eigen.
//
//   auto m = naru::eigen_map<float>(t);        // Eigen::Map of a 1-D or 2-D tensor with any strides; writes go to the tensor
//   Tensor t = naru::from_eigen(matrix);       // a copy, in row-major order
#pragma once

#include <Eigen/Core>

#include "naru/interop/interop.h"

namespace naru {

template <class T>
using EigenMatrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using EigenStride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;

// Maps a 1-D or 2-D cpu tensor of T's dtype (RuntimeError otherwise) as a matrix; a vector is a column. The tensor must outlive the map.
template <class T>
auto eigen_map(const Tensor& t) {
  detail::require_host(t, "eigen_map");
  if (t.dim() < 1 || t.dim() > 2) throw RuntimeError("eigen_map: wanted a tensor of one or two dimensions, got shape {}", t.sizes().str());
  using Matrix = std::conditional_t<std::is_const_v<T>, const EigenMatrix<T>, EigenMatrix<T>>;
  const bool vector = t.dim() == 1;
  const EigenStride stride(t.strides()[0], vector ? 1 : t.strides()[1]);
  return Eigen::Map<Matrix, Eigen::Unaligned, EigenStride>(t.data<T>(), t.size(0), vector ? 1 : t.size(1), stride);
}

// Copies a matrix, or the value of an Eigen expression; types that are vectors at compile time give a 1-D tensor.
template <class D>
Tensor from_eigen(const Eigen::MatrixBase<D>& matrix, const Options& options = {}) {
  using T = typename D::Scalar;
  const EigenMatrix<T> rows = matrix;
  const Dims sizes = D::IsVectorAtCompileTime ? Dims{rows.size()} : Dims{rows.rows(), rows.cols()};
  return from_data(rows.data(), sizes, dtype_of<T>(), options);
}

}  // namespace naru
