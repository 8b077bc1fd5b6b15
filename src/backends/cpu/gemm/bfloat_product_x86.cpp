// bfloat_product.h with AVX512-BF16: VDPBF16PS multiplies pairs of neighbouring elements along k and adds both products to a float32.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/gemm/bfloat_product.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16")
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

}  // namespace naru::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
