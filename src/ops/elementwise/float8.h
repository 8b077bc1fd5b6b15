// Operators on the float8 types. Instructions never see these dtypes: where bits suffice (copies, where) operators use the codes as uint8; abs, ==,
// predicates and products compute in float32, which holds every value exactly, and round once. What PyTorch refuses is refused.
#pragma once

#include <span>

#include "ops/tensor/common.h"

namespace naru::ops {

// apply_into for operands or a result of these dtypes.
void apply_float8(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);
// t as float32 if it has one of these dtypes, otherwise t itself. Records nothing for autograd.
Tensor as_float32(const Tensor& t);

}  // namespace naru::ops
