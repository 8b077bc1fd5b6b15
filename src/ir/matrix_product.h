// What backends whose products are a library's need to know of one: how its matrices lie, and how a bias is added behind it.
#pragma once

#include <optional>

#include "ir/instruction.h"

namespace naru::ir {

// A matrix of rows of neighbouring elements, `step` elements apart; transposed: the rows are those of its transpose.
struct MatrixRows {
  bool transposed = false;
  int64_t step = 0;
};
// nullopt if neither the matrix nor its transpose is such a matrix, or if its rows overlap.
std::optional<MatrixRows> rows_of(const MatMul::Matrix& matrix, int64_t rows, int64_t cols) noexcept;

// c += bias.
Map bias_added(const MatMul& product);

}  // namespace naru::ir
