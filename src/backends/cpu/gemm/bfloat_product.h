// Products of bfloat16 matrices with the processor's own instruction, if it has one (aarch64: BFMMLA of FEAT_BF16).
#pragma once

#include "ir/instruction.h"

namespace naru::cpu {

// True if this processor has the instruction. Checked once.
bool has_bfloat_products() noexcept;

// c = a b, where a and b of `q` are BF16 (any strides) and q.c is row-major F32. Ignores q.bias and q.dtype. Products are exact. Sums are
// float32, rounded to odd, without subnormals (Arm's manual, BFMMLA without FEAT_EBF16), in an order that the instruction defines: not for
// deterministic products. Requires has_bfloat_products().
void bfloat_product(const ir::MatMul& q);

}  // namespace naru::cpu
