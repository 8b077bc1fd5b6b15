// Numbers of the host on their way into elements: the one place that says which of them fit.
#pragma once

#include <span>

#include "ir/op_ids.h"
#include "ops/common.h"
#include "ops/rules.h"

namespace naru::ops {

// The number as an element of `type` holds it; fractions are cut off for integers, and negative ones wrap around in uint8 as in PyTorch.
// Throws RuntimeError ("value cannot be converted to type uint8_t without overflow") where the type has no such number.
Scalar converted(Scalar number, DType type);

// The same without a check of floating-point types: too great a number is infinity there, as conversions of elements have it.
Scalar rounded(Scalar number, DType type);

// The number as float16 or bfloat16 hold it; as it is for other types.
Scalar as_half(Scalar number, DType type);
// Whether an operator on 16-bit types takes that operand, a number, as their elements would hold it: full(0.3) == 0.3. Products, quotients, limits and most
// activations take it as it is (PyTorch's kernels do).
bool rounds_number(ir::OpId id, size_t operand) noexcept;

// A factor of a sum's part (alpha, beta) is of the kind of the result, RuntimeError says which is not.
void require_factor(DType result, const Scalar& factor, const char* name);

// As converted() for numbers that take part in an operator of the table. Most wrap around to the type computed in; those that PyTorch converts first
// (exponents, factors, what where() and threshold() write) must fit, and limits of clamp() are cut to the range.
void fit_numbers(ir::OpId id, Types types, std::span<OpOperand> operands);

// Whether the second operand is an element without dimensions, in the host's memory, that 16 bits would round. Products and quotients, which are computed
// in float32, take it as it is, like a number (as PyTorch's do).
bool is_exact_number(ir::OpId id, const Operand& o, DType compute);

}  // namespace naru::ops
