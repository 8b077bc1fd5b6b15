// LU factorization and solve. Nothing is recorded for autograd.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

struct Lu {
  Tensor lu, pivots, info;
};
// Factors a (*, m, n). LAPACK must support its dtype.
Lu factored(const Tensor& a, const char* op);
// Solves A X = B from A's factors (X A = B if not `left`; Aᴴ in place of A if `adjoint`). Batches broadcast.
Tensor solved(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint, const char* op);

}  // namespace naru::ops
