#include "ir/matrix_product.h"

#include <algorithm>

#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::ir {
namespace {

// The step between rows of neighbouring elements; 0 if it is not such a matrix.
int64_t step_of_rows(int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols) noexcept {
  const int64_t least = std::max<int64_t>(1, cols);
  if (col_stride != 1 && cols != 1) return 0;
  if (rows == 1) return least;
  return row_stride >= least ? row_stride : 0;
}

}  // namespace

std::optional<MatrixRows> rows_of(const MatMul::Matrix& x, int64_t rows, int64_t cols) noexcept {
  if (const int64_t step = step_of_rows(x.row_stride, x.col_stride, rows, cols)) return MatrixRows{false, step};
  if (const int64_t step = step_of_rows(x.col_stride, x.row_stride, cols, rows)) return MatrixRows{true, step};
  return std::nullopt;
}

Map bias_added(const MatMul& q) {
  const View c{q.c.data, q.dtype, {q.c.batch_stride, q.c.row_stride, q.c.col_stride}};
  Map map;
  map.program = ProgramBuilder::single(op::add, {q.dtype, q.dtype}, q.dtype, q.dtype);
  map.shape = {q.batch, q.m, q.n};
  map.inputs = {c, {const_cast<void*>(q.bias), q.dtype, {0, 0, q.bias_stride}}};
  map.outputs = {c};
  return map;
}

}  // namespace naru::ir
