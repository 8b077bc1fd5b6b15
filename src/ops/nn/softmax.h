// Softmax in the parts that losses share. Nothing is recorded for autograd.
#pragma once

#include "ops/reduce/reduction.h"

namespace naru::ops {

// For each row along the dimensions of `set` (kept, with size 1): the greatest element, and the sum of exp(x - greatest) in the accumulator's type.
struct SoftmaxParts {
  Tensor greatest, sum;
};
SoftmaxParts softmax_parts(const Tensor& x, const DimSet& set, DType acc, bool keepdim, const char* op);
// exp(x - greatest) / sum, deferred.
Tensor softmax_of(const Tensor& x, const SoftmaxParts& parts, DType acc, DType out, const char* op);
// Throws NotImplementedError for integers and bool.
void require_softmax_type(DType t, const char* op, const char* rest = "_kernel_impl");

}  // namespace naru::ops
