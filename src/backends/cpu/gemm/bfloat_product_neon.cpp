#include "backends/cpu/gemm/bfloat_product.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/thread_pool.h"
#include "runtime/os/system.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16")
#endif

namespace naru::cpu {
namespace {

using Matrix = ir::MatMul::Matrix;

// A tile of the result is 8 by 8: 16 registers of sums (2 by 2 each), 8 of operands. One instruction multiplies pairs of rows, four
// elements deep.
constexpr int64_t kSide = 8, kDepth = 4, kStep = kSide * kDepth;

int64_t steps_of(int64_t k) { return (k + kDepth - 1) / kDepth; }

// Packs `rows` (up to 8) rows of k elements in the order of the instruction: four elements of each row, then the next four; zeros beyond
// the ends.
void pack(const uint16_t* x, int64_t rows, int64_t row_stride, int64_t k, int64_t col_stride, uint16_t* to) {
  for (int64_t at = 0; at < k; at += kDepth)
    for (int64_t r = 0; r < kSide; ++r, to += kDepth) {
      const uint16_t* from = x + r * row_stride + at * col_stride;
      if (r < rows && col_stride == 1 && at + kDepth <= k) {
        std::memcpy(to, from, kDepth * sizeof *to);
        continue;
      }
      for (int64_t d = 0; d < kDepth; ++d) to[d] = r < rows && at + d < k ? from[d * col_stride] : uint16_t{0};
    }
}

// Packs panel `panel` of a matrix: the rows from 8 * panel on.
void pack_panel(const Matrix& x, int64_t batch, int64_t rows, int64_t row_stride, int64_t k, int64_t col_stride, int64_t panel,
                uint16_t* to) {
  const int64_t first = panel * kSide;
  pack(static_cast<const uint16_t*>(x.data) + batch * x.batch_stride + first * row_stride, std::min(kSide, rows - first), row_stride, k,
       col_stride, to);
}

bfloat16x8_t load(const uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); }

void tile(const uint16_t* a, const uint16_t* b, int64_t steps, float* c, int64_t c_row, int64_t rows, int64_t cols) {
  constexpr int kPairs = kSide / 2;
  float32x4_t sums[kPairs][kPairs];
  for (auto& row : sums)
    for (auto& sum : row) sum = vdupq_n_f32(0);
  for (int64_t s = 0; s < steps; ++s, a += kStep, b += kStep) {
    bfloat16x8_t left[kPairs], right[kPairs];
    for (int i = 0; i < kPairs; ++i) left[i] = load(a + i * 2 * kDepth), right[i] = load(b + i * 2 * kDepth);
    for (int i = 0; i < kPairs; ++i)
      for (int j = 0; j < kPairs; ++j) sums[i][j] = vbfmmlaq_f32(sums[i][j], left[i], right[j]);
  }
  float whole[kSide][kSide];
  for (int i = 0; i < kPairs; ++i)
    for (int j = 0; j < kPairs; ++j) {
      vst1_f32(&whole[2 * i][2 * j], vget_low_f32(sums[i][j]));
      vst1_f32(&whole[2 * i + 1][2 * j], vget_high_f32(sums[i][j]));
    }
  for (int64_t i = 0; i < rows; ++i) std::memcpy(c + i * c_row, whole[i], static_cast<size_t>(cols) * sizeof(float));
}

}  // namespace

bool has_bfloat_products() noexcept {
  static const bool has = runtime::system::has_bfloat16();
  return has;
}

void bfloat_product(const ir::MatMul& q) {
  constexpr double kTime = 0.005;  // nanoseconds per multiply-add, an estimate: only to recognise short jobs
  const int64_t steps = steps_of(q.k), down = (q.m + kSide - 1) / kSide, right = (q.n + kSide - 1) / kSide;
  const int64_t shared = q.b.batch_stride == 0 ? 1 : q.batch;
  const Buffer held = make_buffer({shared, right, steps, kStep}, sizeof(uint16_t));
  auto* const columns = reinterpret_cast<uint16_t*>(held.get());
  const double time = static_cast<double>(q.m * q.n * q.k * q.batch) * kTime;
  parallel_for(
      shared * right,
      [&](int64_t i) { pack_panel(q.b, i / right, q.n, q.b.col_stride, q.k, q.b.row_stride, i % right, columns + i * steps * kStep); },
      time);
  parallel_for(
      q.batch * down,
      [&](int64_t i) {
        const int64_t batch = i / down, row = i % down * kSide;
        const Buffer rows = make_buffer({steps, kStep}, sizeof(uint16_t));
        auto* const a = reinterpret_cast<uint16_t*>(rows.get());
        pack_panel(q.a, batch, q.m, q.a.row_stride, q.k, q.a.col_stride, i % down, a);
        const uint16_t* b = columns + (shared == 1 ? 0 : batch) * right * steps * kStep;
        float* c = static_cast<float*>(q.c.data) + batch * q.c.batch_stride + row * q.c.row_stride;
        for (int64_t j = 0; j < right; ++j, b += steps * kStep)
          tile(a, b, steps, c + j * kSide, q.c.row_stride, std::min(kSide, q.m - row), std::min(kSide, q.n - j * kSide));
      },
      time);
}

}  // namespace naru::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#elif !defined(__x86_64__)

namespace naru::cpu {
bool has_bfloat_products() noexcept { return false; }
void bfloat_product(const ir::MatMul&) {}
}  // namespace naru::cpu

#endif

#if !defined(__x86_64__)

namespace naru::cpu {
bool has_bfloat_tiles() noexcept { return false; }
void bfloat_tile_product(const ir::MatMul&) {}
void begin_tiles() noexcept {}
void end_tiles() noexcept {}
int64_t tile_panel_bytes(int64_t) noexcept { return 0; }
void pack_tiles(bool, const uint16_t*, int64_t, int64_t, int64_t, int64_t, char*) {}
void multiply_tiles(const char*, const char*, int64_t, int64_t, int64_t, int64_t, float*, int64_t, bool) {}
void round_rows(const float*, int64_t, int64_t, int64_t, uint16_t*, int64_t) {}
}  // namespace naru::cpu

#endif
