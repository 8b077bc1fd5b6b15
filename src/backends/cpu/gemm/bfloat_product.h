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

// Tiles for those who keep packed operands: a panel is 32 rows of the left matrix, or columns of the right one, all of k elements.
int64_t tile_panel_bytes(int64_t k) noexcept;
// Packs `count` rows of a left (columns of a right) matrix from x, `step` elements apart, whose elements are `along` apart.
void pack_tiles(bool left, const uint16_t* x, int64_t step, int64_t along, int64_t count, int64_t k, char* to);
// c (m, n; row-major, c_row apart) = or += the product of packed matrices over their first k, where panels of the right one lie right_panel bytes
// apart. c has room for multiples of 32 rows and columns. Within a TileSession.
void multiply_tiles(const char* left, const char* right, int64_t right_panel, int64_t m, int64_t n, int64_t k, float* c, int64_t c_row,
                    bool add);
// Rows of float32, up to a multiple of 32 columns, as bfloat16, rounded to nearest even.
void round_rows(const float* x, int64_t row, int64_t rows, int64_t columns, uint16_t* to, int64_t to_row);

// Lets this thread use tiles; while it does, switching between threads saves 8 KiB more.
void begin_tiles() noexcept;
void end_tiles() noexcept;
class TileSession {
 public:
  TileSession() noexcept { begin_tiles(); }
  ~TileSession() { end_tiles(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

}  // namespace naru::cpu
