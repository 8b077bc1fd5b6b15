// Products of bfloat16 matrices with the processor's own instruction, if it has one (aarch64: BFMMLA of FEAT_BF16; x86-64: VDPBF16PS of
// AVX512-BF16).
#pragma once

#include "ir/instruction.h"

namespace naru::cpu {

// True if this processor has the instruction. Checked once.
bool has_bfloat_products() noexcept;

// c = a b, where a and b of `q` are BF16 (any strides) and q.c is row-major F32. Ignores q.bias and q.dtype. Products are exact. Sums are
// float32 without subnormals, rounded as the instruction does (aarch64: to odd; Arm's manual, BFMMLA without FEAT_EBF16), in an order that it
// defines: not for deterministic products. The bits do not depend on the number of threads. Requires has_bfloat_products().
void bfloat_product(const ir::MatMul& q);

// True if this processor multiplies tiles of bfloat16 (AMX-BF16) and the system lets this process use them. Checked once.
bool has_bfloat_tiles() noexcept;

// c = a b + bias by these tiles, all of `q` BF16 with any strides, rounded once at the end. Sums are as above: float32 without subnormals, in
// the order that TDPBF16PS defines, whatever the parts and the number of threads. Requires has_bfloat_tiles().
void bfloat_tile_product(const ir::MatMul& q);

}  // namespace naru::cpu
