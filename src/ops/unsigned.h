// How operators compute with uint16, uint32 and uint64: over the same memory seen as signed integers where the bits are the same either way (copies,
// products, equality, bits), and with the wider signed type, or the sign bit turned, where the order counts. No instruction learns of them.
#pragma once

#include <span>

#include "ops/common.h"
#include "ops/rules.h"

namespace naru::ops {

// The memory of a tensor of these types as signed integers, and such memory as elements of `type`. Both share memory and record nothing; a tensor
// of another type is returned as it is.
Tensor as_signed(const Tensor& t);
Tensor as_unsigned(const Tensor& t, DType type);
// Signed integers in the order of t's elements: of a wider type, of uint64 with the sign bit turned. Other tensors as they are.
Tensor in_signed_order(const Tensor& t);
// For what computes in a type of instructions: int64 (of uint64: modulo 2 to the 64), or `type` where that is floating point. Other tensors as they are.
Tensor as_computed(const Tensor& t, DType type = DType::I64);

// The types of an operator of the table. Throws what PyTorch throws where it has no such operator.
Types unsigned_types(Rule rule, DType t, const char* op);
// apply_into for operands or a result of these types.
void apply_unsigned(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);

}  // namespace naru::ops
