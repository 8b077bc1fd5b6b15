// bfloat_product.h with AVX512-BF16: VDPBF16PS multiplies pairs of neighbouring elements along k and adds both products to a float32. With
// AMX-BF16, TDPBF16PS does so for tiles of 16 by 16 sums, 16 pairs deep.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/gemm/bfloat_product.h"
#include "runtime/os/system.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")
#endif

namespace naru::cpu {
namespace {

using Matrix = ir::MatMul::Matrix;

// A tile of the result is 12 rows by 32 columns: 24 registers of sums. Operands are packed in pairs of k: of each panel of rows (columns) all of the
// first pair, then all of the second. A block of kDepth of k is packed at a time, so that a panel of b fits into L1 and a block of rows into L2.
constexpr int64_t kRows = 12, kColumns = 32, kDepth = 512, kPairs = kDepth / 2, kBlockRows = 8 * kRows;
constexpr int64_t kPair = 2 * sizeof(uint16_t);

const char* element(const Matrix& x, int64_t batch, int64_t row, int64_t col) {
  return static_cast<const char*>(x.data) + (batch * x.batch_stride + row * x.row_stride + col * x.col_stride) * 2;
}
uint16_t load(const char* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Packs `count` vectors (rows of a, columns of b) of `depth` elements of k as kWidth of them; missing ones, and the last odd element's partner, are zero.
// step, along: bytes between neighbouring vectors, and between neighbouring elements of one.
template <int64_t kWidth>
void pack(const char* from, int64_t step, int64_t along, int64_t count, int64_t depth, char* to) {
  const int64_t pairs = depth / 2;
  if (count < kWidth) std::memset(to, 0, static_cast<size_t>((depth + 1) / 2 * kWidth * kPair));
  if (along == 2) {
    transpose(from, step, kPair, pairs, count, to, kWidth * kPair);
  } else if (step == 2) {
    // Neighbouring vectors are contiguous: interleave the elements of two rows.
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3,
                                         34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const auto mask = static_cast<__mmask32>(count == 32 ? ~0u : (1u << count) - 1);
    const auto first = static_cast<__mmask16>(count >= 16 ? 0xffff : (1u << count) - 1);
    const auto second = static_cast<__mmask16>(count > 16 ? (1u << (count - 16)) - 1 : 0);
    for (int64_t p = 0; p < pairs; ++p) {
      const __m512i even = _mm512_maskz_loadu_epi16(mask, from + 2 * p * along),
                    odd = _mm512_maskz_loadu_epi16(mask, from + (2 * p + 1) * along);
      char* const row = to + p * kWidth * kPair;
      _mm512_mask_storeu_epi32(row, first, _mm512_permutex2var_epi16(even, low, odd));
      if (second) _mm512_mask_storeu_epi32(row + 64, second, _mm512_permutex2var_epi16(even, high, odd));
    }
  } else {
    for (int64_t p = 0; p < pairs; ++p)
      for (int64_t i = 0; i < count; ++i)
        for (int64_t d = 0; d < 2; ++d) std::memcpy(to + (p * kWidth + i) * kPair + d * 2, from + i * step + (2 * p + d) * along, 2);
  }
  if (depth % 2 == 0) return;
  for (int64_t i = 0; i < kWidth; ++i) {
    const uint16_t last[2] = {i < count ? load(from + i * step + (depth - 1) * along) : uint16_t{0}, 0};
    std::memcpy(to + (pairs * kWidth + i) * kPair, last, kPair);
  }
}

__m512bh as_pairs(__m512i v) { return (__m512bh)v; }

// c (12, 32) = or += the product of two packed panels.
void tile(const char* a, const char* b, int64_t pairs, bool adds, float* c, int64_t c_row) {
  __m512 sums[kRows][2];
#pragma GCC unroll 12
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t v = 0; v < 2; ++v) sums[r][v] = adds ? _mm512_loadu_ps(c + r * c_row + v * 16) : _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p, a += kRows * kPair, b += kColumns * kPair) {
    const __m512bh left = as_pairs(_mm512_load_si512(b)), right = as_pairs(_mm512_load_si512(b + 64));
#pragma GCC unroll 12
    for (int64_t r = 0; r < kRows; ++r) {
      int both;
      std::memcpy(&both, a + r * kPair, sizeof both);
      const __m512bh row = as_pairs(_mm512_set1_epi32(both));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], row, left);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], row, right);
    }
  }
#pragma GCC unroll 12
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t v = 0; v < 2; ++v) _mm512_storeu_ps(c + r * c_row + v * 16, sums[r][v]);
}

// The same for a tile at an edge, of fewer rows or columns.
void edge_tile(const char* a, const char* b, int64_t pairs, bool adds, float* c, int64_t c_row, int64_t rows, int64_t cols) {
  alignas(64) float whole[kRows * kColumns] = {};
  for (int64_t r = 0; r < rows && adds; ++r) std::memcpy(whole + r * kColumns, c + r * c_row, static_cast<size_t>(cols) * sizeof(float));
  tile(a, b, pairs, adds, whole, kColumns);
  for (int64_t r = 0; r < rows; ++r) std::memcpy(c + r * c_row, whole + r * kColumns, static_cast<size_t>(cols) * sizeof(float));
}

// The rows from `row` on of one block of k, by the columns [first, last). b: the packed block of k.
void block_of_rows(const ir::MatMul& q, int64_t batch, int64_t row, int64_t first, int64_t last, int64_t k, int64_t depth, const char* b) {
  const int64_t rows = std::min(kBlockRows, q.m - row), pairs = (depth + 1) / 2, panel = kRows * pairs * kPair;
  const Buffer held = make_buffer({(rows + kRows - 1) / kRows * kRows, pairs}, kPair);
  char* const a = held.get();
  for (int64_t i = 0; i < rows; i += kRows)
    pack<kRows>(element(q.a, batch, row + i, k), q.a.row_stride * 2, q.a.col_stride * 2, std::min(kRows, rows - i), depth,
                a + i / kRows * panel);
  b += first * pairs * kPair;
  for (int64_t j = first; j < last; j += kColumns, b += kColumns * pairs * kPair)
    for (int64_t i = 0; i < rows; i += kRows) {
      float* const c = static_cast<float*>(q.c.data) + batch * q.c.batch_stride + (row + i) * q.c.row_stride + j;
      if (rows - i >= kRows && q.n - j >= kColumns)
        tile(a + i / kRows * panel, b, pairs, k > 0, c, q.c.row_stride);
      else
        edge_tile(a + i / kRows * panel, b, pairs, k > 0, c, q.c.row_stride, std::min(kRows, rows - i), std::min(kColumns, q.n - j));
    }
}

// --- tiles -----------------------------------------------------------------------------------------------------------------------------

// A square of the result is 32 by 32: four tiles of sums, and two tiles of each operand. Operands are packed in panels of 32 rows (columns):
// of each piece of 32 k, a first operand has 32 rows of 64 bytes, a second one 16 pairs of k of 32 columns. Up to kBlock panels make a block,
// in which kStretch pieces of one panel are followed by those of the next: a stretch of a panel fits into L1, sums of two blocks and a part of
// their operands into L2.
constexpr int64_t kSquare = 32, kPiece = 32, kPieceBytes = kSquare * kPiece * 2, kStretch = 8, kBlock = 8;
// Packed operands: at most so many bytes of the second one at a time.
constexpr int64_t kSecondBytes = 24 << 20;

// Packs a piece, of up to 32 rows (columns) and 32 elements of k, of the first (second) operand. step, along: bytes between rows, and along k.
template <bool kFirst>
void pack_piece(const char* from, int64_t step, int64_t along, int64_t count, int64_t depth, char* to) {
  if (kFirst && along == 2) {
    const auto mask = static_cast<__mmask32>(depth == kPiece ? ~0u : (1u << depth) - 1);
    for (int64_t r = 0; r < count; ++r) _mm512_store_si512(to + r * 64, _mm512_maskz_loadu_epi16(mask, from + r * step));
    for (int64_t r = count; r < kSquare; ++r) _mm512_store_si512(to + r * 64, _mm512_setzero_si512());
    return;
  }
  alignas(64) char turned[kPieceBytes];
  char* const pairs = kFirst ? turned : to;
  if (depth < kPiece) std::memset(pairs, 0, kPieceBytes);
  pack<kSquare>(from, step, along, count, depth, pairs);
  if (kFirst) transpose(pairs, kSquare * kPair, kPair, kSquare, kPiece / 2, to, kPiece / 2 * kPair);
}

// A packed block: `panels` panels of `pieces` pieces each, of the rows (columns) from `at` on.
struct Block {
  char* packed;
  int64_t at, panels, pieces;
  char* stretch(int64_t piece, int64_t panel, int64_t some) const { return packed + (piece * panels + panel * some) * kPieceBytes; }
};

// Packs the stretch of a block that begins at piece `first` of the operand of `q`.
template <bool kFirst>
void pack_stretch(const ir::MatMul& q, int64_t batch, const Block& block, int64_t first) {
  const Matrix& x = kFirst ? q.a : q.b;
  const int64_t step = 2 * (kFirst ? x.row_stride : x.col_stride), along = 2 * (kFirst ? x.col_stride : x.row_stride);
  const int64_t size = kFirst ? q.m : q.n, some = std::min(kStretch, block.pieces - first);
  const char* const from = kFirst ? element(x, batch, block.at, first * kPiece) : element(x, batch, first * kPiece, block.at);
  const auto pack_one = [&](int64_t panel, int64_t piece) {
    const int64_t done = panel * kSquare, k = (first + piece) * kPiece;
    pack_piece<kFirst>(from + done * step + piece * kPiece * along, step, along, std::min(kSquare, size - block.at - done),
                       std::min(kPiece, q.k - k), block.stretch(first, panel, some) + piece * kPieceBytes);
  };
  // In the order in which the operand lies.
  if (along < step)
    for (int64_t panel = 0; panel < block.panels; ++panel)
      for (int64_t piece = 0; piece < some; ++piece) pack_one(panel, piece);
  else
    for (int64_t piece = 0; piece < some; ++piece)
      for (int64_t panel = 0; panel < block.panels; ++panel) pack_one(panel, piece);
}

// sums (32, 32; rows of `row` elements) = or += the product of `pieces` pieces of two panels.
void square(const char* first, const char* second, int64_t pieces, bool adds, float* sums, int64_t row = kSquare) {
  asm volatile("" ::: "memory");  // gcc 12 does not know that _tile_loadd reads memory
  const int64_t bytes = row * static_cast<int64_t>(sizeof(float));
  float* const below = sums + 16 * row;
  if (adds) {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + 16, bytes);
    _tile_loadd(2, below, bytes);
    _tile_loadd(3, below + 16, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t p = 0; p < pieces; ++p, first += kPieceBytes, second += kPieceBytes) {
    _tile_loadd(4, first, 64);
    _tile_loadd(6, second, kSquare * kPair);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, second + 64, kSquare * kPair);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, first + kPieceBytes / 2, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + 16, bytes);
  _tile_stored(2, below, bytes);
  _tile_stored(3, below + 16, bytes);
}

// Sixteen float32 as bfloat16, rounded to nearest even; a NaN stays one. (VCVTNEPS2BF16 would turn subnormal numbers into zeros.)
__m256i as_bfloat(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet), 16));
}

// Writes rows x cols of a square, which begins at (row, col) of the result. turned: the bias is one number a row.
void write_square(const ir::MatMul& q, bool turned, int64_t batch, int64_t row, int64_t col, const float* sums) {
  const int64_t rows = std::min(kSquare, q.m - row), cols = std::min(kSquare, q.n - col);
  alignas(64) float bias[kSquare] = {};
  const auto bias_at = [&](int64_t i) {
    return std::bit_cast<float>(uint32_t{load(static_cast<const char*>(q.bias) + i * q.bias_stride * 2)} << 16);
  };
  for (int64_t j = 0; j < cols && q.bias && !turned; ++j) bias[j] = bias_at(col + j);
  const auto low = static_cast<__mmask16>(cols >= 16 ? 0xffff : (1u << cols) - 1);
  const auto high = static_cast<__mmask16>(cols > 16 ? (1u << (cols - 16)) - 1 : 0);
  for (int64_t r = 0; r < rows; ++r, sums += kSquare) {
    __m512 left = _mm512_load_ps(sums), right = _mm512_load_ps(sums + 16);
    if (q.bias && turned) {
      const __m512 one = _mm512_set1_ps(bias_at(row + r));
      left = _mm512_add_ps(left, one), right = _mm512_add_ps(right, one);
    } else if (q.bias) {
      left = _mm512_add_ps(left, _mm512_load_ps(bias)), right = _mm512_add_ps(right, _mm512_load_ps(bias + 16));
    }
    char* const to = const_cast<char*>(element(q.c, batch, row + r, col));
    if (q.c.col_stride == 1) {
      _mm256_mask_storeu_epi16(to, low, as_bfloat(left));
      if (high) _mm256_mask_storeu_epi16(to + 32, high, as_bfloat(right));
      continue;
    }
    alignas(32) uint16_t whole[kSquare];
    _mm256_store_si256(reinterpret_cast<__m256i*>(whole), as_bfloat(left));
    _mm256_store_si256(reinterpret_cast<__m256i*>(whole + 16), as_bfloat(right));
    for (int64_t j = 0; j < cols; ++j) std::memcpy(to + j * q.c.col_stride * 2, whole + j, 2);
  }
}

// The part of the product that has the rows of a block and the columns of another. sums: memory for those of all their squares.
void multiply(const ir::MatMul& q, bool turned, int64_t batch, const Block& rows, const Block& columns, float* sums) {
  for (int64_t p = 0; p < rows.pieces; p += kStretch) {
    const int64_t some = std::min(kStretch, rows.pieces - p);
    float* here = sums;
    for (int64_t j = 0; j < columns.panels; ++j)
      for (int64_t i = 0; i < rows.panels; ++i, here += kSquare * kSquare) {
        square(rows.stretch(p, i, some), columns.stretch(p, j, some), some, p > 0, here);
        if (p + some == rows.pieces) write_square(q, turned, batch, rows.at + i * kSquare, columns.at + j * kSquare, here);
      }
  }
}

bool may_use_tiles() noexcept {
  constexpr unsigned kBfloatTiles = 1u << 22, kTiles = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBfloatTiles) && (d & kTiles) && runtime::system::allow_tiles();
}

}  // namespace

bool has_bfloat_products() noexcept {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has && wide_level() == 2;
}

void bfloat_product(const ir::MatMul& q) {
  constexpr double kTime = 0.003;  // nanoseconds per multiply-add, an estimate: only to recognise short jobs
  const int64_t panels = (q.n + kColumns - 1) / kColumns, blocks = (q.m + kBlockRows - 1) / kBlockRows;
  // Few blocks of rows are cut by columns, too, so that every thread has as much to do. Elements are the same for every cut.
  const int64_t cuts = std::clamp<int64_t>(4 * num_threads() / (q.batch * blocks), 1, panels), each = (panels + cuts - 1) / cuts * kColumns;
  const int64_t shared = q.b.batch_stride == 0 ? 1 : q.batch;
  const Buffer held = make_buffer({shared, panels, std::min(kPairs, (q.k + 1) / 2), kColumns}, kPair);
  const double time = static_cast<double>(q.m * q.n) * static_cast<double>(std::min(q.k, kDepth) * q.batch) * kTime;
  for (int64_t k = 0; k < q.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, q.k - k), panel = (depth + 1) / 2 * kColumns * kPair;
    parallel_for(
        shared * panels,
        [&](int64_t i) {
          const int64_t col = i % panels * kColumns;
          pack<kColumns>(element(q.b, i / panels, k, col), q.b.col_stride * 2, q.b.row_stride * 2, std::min(kColumns, q.n - col), depth,
                         held.get() + i * panel);
        },
        time / 8);
    parallel_for(
        q.batch * blocks * cuts,
        [&](int64_t i) {
          const int64_t batch = i / (blocks * cuts), first = i % cuts * each;
          if (first < q.n)
            block_of_rows(q, batch, i / cuts % blocks * kBlockRows, first, std::min(first + each, q.n), k, depth,
                          held.get() + (shared == 1 ? 0 : batch) * panels * panel);
        },
        time);
  }
}

bool has_bfloat_tiles() noexcept {
  static const bool has = has_bfloat_products() && may_use_tiles();
  return has;
}

void begin_tiles() noexcept {
  struct alignas(64) Shape {
    uint8_t palette, start, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static constexpr Shape kFull{1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&kFull);
}
void end_tiles() noexcept { _tile_release(); }

int64_t tile_panel_bytes(int64_t k) noexcept { return (k + kPiece - 1) / kPiece * kPieceBytes; }

void pack_tiles(bool left, const uint16_t* x, int64_t step, int64_t along, int64_t count, int64_t k, char* to) {
  const char* const from = reinterpret_cast<const char*>(x);
  for (int64_t i = 0; i < count; i += kSquare)
    for (int64_t p = 0; p < k; p += kPiece, to += kPieceBytes)
      (left ? pack_piece<true> : pack_piece<false>)(from + 2 * (i * step + p * along), 2 * step, 2 * along, std::min(kSquare, count - i),
                                                    std::min(kPiece, k - p), to);
}

void multiply_tiles(const char* left, const char* right, int64_t right_panel, int64_t m, int64_t n, int64_t k, float* c, int64_t c_row,
                    bool add) {
  const int64_t left_panel = tile_panel_bytes(k), pieces = left_panel / kPieceBytes;
  for (int64_t j = 0; j < n; j += kSquare)
    for (int64_t i = 0; i < m; i += kSquare)
      square(left + i / kSquare * left_panel, right + j / kSquare * right_panel, pieces, add, c + i * c_row + j, c_row);
}

void round_rows(const float* x, int64_t row, int64_t rows, int64_t columns, uint16_t* to, int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < columns; i += 32) {
      const __m256i low = as_bfloat(_mm512_loadu_ps(x + r * row + i)), high = as_bfloat(_mm512_loadu_ps(x + r * row + i + 16));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * to_row + i), low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + r * to_row + i + 16), high);
    }
}

void bfloat_tile_product(const ir::MatMul& asked) {
  constexpr double kTime = 0.0005, kShort = 20000;  // nanoseconds per multiply-add, an estimate; of a job that one thread does
  ir::MatMul q = asked;
  // The transposes' product has contiguous rows where this one's columns are. Few rows: the other matrix is packed as the first one, by copies.
  const bool turned = (q.c.col_stride != 1 && q.c.row_stride == 1) || (q.m <= kSquare && q.n > q.m && q.b.row_stride == 1);
  if (turned) {
    std::swap(q.a, q.b), std::swap(q.m, q.n);
    for (Matrix* x : {&q.a, &q.b, &q.c}) std::swap(x->row_stride, x->col_stride);
  }
  const double time = static_cast<double>(q.m * q.n) * static_cast<double>(q.k * q.batch) * kTime;
  const auto quotient = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t pieces = quotient(q.k, kPiece), panel = pieces * kPieceBytes, shared = q.b.batch_stride == 0 ? 1 : q.batch;
  const int64_t row_panels = quotient(q.m, kSquare), col_panels = quotient(q.n, kSquare),
                wanted = time > kShort && num_threads() > 1 ? 4 * num_threads() : 1;
  // Few blocks of rows are cut, and their columns shared out, so that every thread has as much to do. Elements are the same for every cut.
  int64_t down = std::min(kBlock, row_panels), across = std::min(kBlock, col_panels);
  while (down > 2 && q.batch * quotient(row_panels, down) * quotient(col_panels, across) < wanted) down = quotient(down, 2);
  while (across > 2 && q.batch * quotient(row_panels, down) * quotient(col_panels, across) < wanted) across = quotient(across, 2);
  const int64_t parts = quotient(row_panels, down), blocks = quotient(col_panels, across);
  const int64_t cuts = std::clamp<int64_t>(wanted / (q.batch * parts), 1, blocks);
  const int64_t stretches = quotient(pieces, kStretch);
  const int64_t together = std::clamp<int64_t>(kSecondBytes / (panel * across * shared), cuts, blocks);
  const Buffer second = make_buffer({shared, together, across}, static_cast<size_t>(panel));
  for (int64_t at = 0; at < blocks; at += together) {
    const int64_t some = std::min(together, blocks - at);
    const auto columns = [&](int64_t batch, int64_t i) {
      return Block{second.get() + ((shared == 1 ? 0 : batch) * together + i) * across * panel, (at + i) * across * kSquare,
                   std::min(across, col_panels - (at + i) * across), pieces};
    };
    parallel_for(
        shared * some * stretches,
        [&](int64_t i) {
          const int64_t batch = i / (some * stretches);
          pack_stretch<false>(q, batch, columns(batch, i / stretches % some), i % stretches * kStretch);
        },
        time / 8);
    const int64_t each = quotient(some, cuts);
    parallel_for(
        q.batch * parts * cuts,
        [&](int64_t i) {
          const int64_t batch = i / (parts * cuts), first = i / cuts % parts * down, begin = i % cuts * each;
          const Buffer packed = make_buffer({down}, static_cast<size_t>(panel));
          const Buffer sums = make_buffer({down * across}, kSquare * kSquare * sizeof(float));
          const Block rows{packed.get(), first * kSquare, std::min(down, row_panels - first), pieces};
          for (int64_t p = 0; p < pieces; p += kStretch) pack_stretch<true>(q, batch, rows, p);
          const TileSession tiles;
          for (int64_t j = begin; j < std::min(begin + each, some); ++j)
            multiply(q, turned, batch, rows, columns(batch, j), reinterpret_cast<float*>(sums.get()));
        },
        time);
  }
}

}  // namespace naru::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
