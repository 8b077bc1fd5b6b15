// Operators on uint16, uint32 and uint64. Where signed arithmetic gives the same bits (copies, products, equality, bitwise operators), they view the
// memory as signed integers. Where order matters, they use the wider signed type or flip the sign bit. Instructions never see these dtypes.
#pragma once

#include <span>

#include "ops/elementwise/rules.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// as_stored views a tensor of one of these dtypes, or of a float8 type, as elements of its storage_type; as_elements views such elements as those of
// `type`. Both share memory and record nothing for autograd. For other dtypes both return the tensor unchanged.
Tensor as_stored(const Tensor& t);
Tensor as_elements(const Tensor& t, DType type);
// Signed integers that have the order of t's elements: the wider signed type, or, for uint64, int64 with the sign bit flipped. Other tensors are
// returned unchanged.
Tensor in_signed_order(const Tensor& t);
// Converts t to a type that instructions support: `type` if that is floating point, else int64 (uint64 modulo 2^64). Other tensors are returned
// unchanged.
Tensor as_computed(const Tensor& t, DType type = DType::I64);

// The compute and result types of an elementwise operator. Throws PyTorch's error if PyTorch has no such operator.
Types unsigned_types(Rule rule, DType t, const char* op);
// apply_into for operands or a result of these dtypes.
void apply_unsigned(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);

}  // namespace naru::ops
