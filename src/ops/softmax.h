// softmax without autograd, in the parts that losses share.
#pragma once

#include "ops/reduction.h"

namespace naru::ops {

// Of each row along the dimensions of `set` (kept, of size 1): the greatest element, and the sum of exp(x - greatest), of the
// accumulator's type.
struct SoftmaxParts {
  Tensor greatest, sum;
};
SoftmaxParts softmax_parts(const Tensor& x, const DimSet& set, DType acc, bool keepdim, const char* op);
// exp(x - greatest) / sum, lazily.
Tensor softmax_of(const Tensor& x, const SoftmaxParts& parts, DType acc, DType out, const char* op);
// Throws NotImplementedError for integers and bool.
void require_softmax_type(DType t, const char* op, const char* rest = "_kernel_impl");

}  // namespace naru::ops
