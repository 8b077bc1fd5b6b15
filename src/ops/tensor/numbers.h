// Conversion of host scalars to elements: the only code that decides which scalars fit which dtype.
#pragma once

#include <span>

#include "ir/op_ids.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// The scalar as an element of `type`. For integers, fractions are truncated; for uint8, negative numbers wrap around as in PyTorch. RuntimeError
// ("value cannot be converted to type uint8_t without overflow") if the type cannot hold it.
Scalar converted(Scalar number, DType type);

// The same without a range check for floating-point types: a number that is too large becomes infinity, as in conversions of elements.
Scalar rounded(Scalar number, DType type);

// The scalar rounded to float16 or bfloat16; unchanged for other types.
Scalar as_half(Scalar number, DType type);
// True if an operator on 16-bit types rounds this scalar operand to the element type first: full(0.3) == 0.3. Products, quotients, limits and most
// activations use it unrounded, as PyTorch's kernels do.
bool rounds_number(ir::OpId id, size_t operand) noexcept;

// RuntimeError if a scalar factor (alpha, beta) has a higher category than the result's dtype.
void require_factor(DType result, const Scalar& factor, const char* name);

// Like converted(), for scalar operands of elementwise operators. Most wrap around to the compute type. Those that PyTorch converts first (exponents,
// factors, values that where() and threshold() write) must fit; limits of clamp() are clamped to the type's range.
void fit_numbers(ir::OpId id, Types types, std::span<OpOperand> operands);

// True if the second operand is a 0-d tensor, ready on the host, that 16 bits would round. Products and quotients, which are computed in float32, use
// its exact value, as they do for a scalar (and as PyTorch does).
bool is_exact_number(ir::OpId id, const Operand& o, DType compute);

}  // namespace naru::ops
