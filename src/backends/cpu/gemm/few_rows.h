// Products of a few rows of float32 with a matrix of float32 or 16-bit numbers, which is read once, as it lies: what a network's layers are for few
// samples.
#pragma once

#include <cstdint>

#include "naru/dtype.h"

namespace naru::cpu {

// float16 beyond these is converted to float32 as a whole, which more rows are worth.
constexpr int64_t most_few_rows(DType type) { return type == DType::F16 ? 16 : 7; }

// y = x b: x (m, k), m <= most_few_rows(type), b (k, n) of F32, F16 or BF16 with a unit stride along k or n, y (m, n). Rows of x and y are
// contiguous. Sums are float32, in an order that depends on k and the layout of b alone.
struct FewRows {
  DType type;
  int64_t m, n, k;
  const float* x;
  int64_t x_row;
  const void* b;
  int64_t b_row, b_col;  // strides in elements
  float* y;
  int64_t y_row;
};

// True if this processor converts 16-bit numbers in vectors (x86-64 with AVX2, FMA and F16C).
bool has_few_rows() noexcept;
void few_rows_product(const FewRows& q);

}  // namespace naru::cpu
