// LU factors without autograd.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

struct Lu {
  Tensor lu, pivots, info;
};
// Of a (*, m, n), whose type LAPACK must know.
Lu factored(const Tensor& a, const char* op);
// X with A X = B (X A = B; Aᴴ where adjoint) of A's factors; batches broadcast.
Tensor solved(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint, const char* op);

}  // namespace naru::ops
