// Complex tensors: their parts, and functions that make and take them apart. Memory holds the real and the imaginary part of each element side by
// side, so the parts are views: writes to them are writes to the tensor. Gradients are PyTorch's: that of a real loss by z = x + iy is dL/dx + i dL/dy.
#pragma once

#include "naru/ops.h"

namespace naru {

// (..., 2) real numbers over a complex tensor's memory. RuntimeError for real tensors.
Tensor view_as_real(const Tensor& t);
// The other way round, over a real tensor whose last dimension has size 2 and stride 1, and whose other strides and offset are even (RuntimeError).
Tensor view_as_complex(const Tensor& t);
// The parts as views; the real part of a real tensor is itself, and it has no imaginary part (RuntimeError).
Tensor real(const Tensor& t);
Tensor imag(const Tensor& t);
// real + i imag, and abs * (cos(angle) + i sin(angle)), of two tensors of one type: float16, float32 or float64 (RuntimeError, NotImplementedError).
Tensor complex(const Tensor& real, const Tensor& imag);
Tensor polar(const Tensor& abs, const Tensor& angle);
// The conjugate, a new tensor; a real tensor is itself.
Tensor conj(const Tensor& t);
void conj_physical_(const Tensor& t);
// The angle in the plane, in radians; of real numbers 0 or pi.
Tensor angle(const Tensor& t);
// t / |t|, 0 where t is 0; of real numbers the sign.
Tensor sgn(const Tensor& t);
// Whether each element's imaginary part is 0.
Tensor isreal(const Tensor& t);
// The product of the first vector's conjugate and the second.
Tensor vdot(const Tensor& a, const Tensor& b);

}  // namespace naru
