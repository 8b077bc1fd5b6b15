// Complex tensors: their components, and conversion to and from real tensors. The real and imaginary parts of each element are adjacent in
// memory, so the components are views that can be written. Gradients follow PyTorch: for a real loss L and z = x + iy, the gradient is
// dL/dx + i dL/dy.
#pragma once

#include "naru/ops.h"

namespace naru {

// A view as real numbers of shape (..., 2). Throws RuntimeError for real tensors.
Tensor view_as_real(const Tensor& t);
// The inverse. Throws RuntimeError unless the last dimension has size 2 and stride 1, and the other strides and the offset are even.
Tensor view_as_complex(const Tensor& t);
// The components as views. The real part of a real tensor is the tensor itself; imag throws RuntimeError for real tensors.
Tensor real(const Tensor& t);
Tensor imag(const Tensor& t);
// complex: real + i imag; polar: abs * (cos(angle) + i sin(angle)). Both tensors have the same dtype: float16, float32 or float64
// (RuntimeError, NotImplementedError).
Tensor complex(const Tensor& real, const Tensor& imag);
Tensor polar(const Tensor& abs, const Tensor& angle);
// The conjugate, as a new tensor; a real tensor is returned as it is.
Tensor conj(const Tensor& t);
void conj_physical_(const Tensor& t);
// The argument in radians; for real numbers 0 or pi.
Tensor angle(const Tensor& t);
// t / |t|, and 0 where t is 0; for real numbers the sign.
Tensor sgn(const Tensor& t);
// True where an element's imaginary part is 0.
Tensor isreal(const Tensor& t);
// The dot product of the conjugate of a with b.
Tensor vdot(const Tensor& a, const Tensor& b);

}  // namespace naru
