// Products of bfloat16 matrices by the processor's own instruction for them, where it has one (aarch64: BFMMLA, of FEAT_BF16).
#pragma once

#include "ir/instruction.h"

namespace naru::host {

// Whether this processor has the instruction. Read once.
bool has_bfloat_products() noexcept;

// c = a b, of `q` with a and b of BF16 (any strides) and q.c row-major F32; q.bias and q.dtype are not looked at. Products are exact, sums are
// float32 rounded to odd without subnormals (Arm's manual, BFMMLA without FEAT_EBF16), in an order of the instruction's: not for deterministic
// products. Call it only where has_bfloat_products().
void bfloat_product(const ir::MatMul& q);

}  // namespace naru::host
