// Shared by the linear algebra functions: checks, matrices in LAPACK's layout, and calls of its routines (ir::Lapack).
#pragma once

#include <string_view>
#include <vector>

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "naru/ops/linalg.h"
#include "ops/batch/batch.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// RuntimeError unless t is a matrix or a batch of matrices (require_square: of square ones).
void require_matrices(const Tensor& t, std::string_view op, const char* name = "A");
void require_square(const Tensor& t, std::string_view op, const char* name = "A");
// NotImplementedError for integers and, unless `low`, for 16-bit types.
void require_floating(const Tensor& t, std::string_view op, bool low = true);
// True for float32, float64, complex64 and complex128; require_lapack_type throws NotImplementedError "\"lu_cpu\" not implemented for 'Half'" for
// others.
bool is_lapack_type(DType type);
void require_lapack_type(const Tensor& t, const char* kernel);
// True if B of A X = B holds vectors: B has one dimension, or A's shape without the last dimension.
bool is_vector_right_side(const Tensor& a, const Tensor& b);
// The device of both tensors; RuntimeError if they differ.
Device require_one_device(const Tensor& a, const Tensor& b, const char* op, const char* name_a = "A", const char* name_b = "B");
// Throws LinAlgError, worded for the function `api`, for the first nonzero element of `info`. Reads `info` on the host.
void check_info(const Tensor& info, std::string_view api, bool batched);

// All sizes but the last two; with_matrix appends two.
Dims batch_of(const Tensor& t);
Dims with_matrix(const Dims& batch, int64_t rows, int64_t cols);
// The transpose: (..., m, n) as (..., n, m).
inline Tensor flipped(const Tensor& t) { return t.transpose(-2, -1); }
// The conjugate transpose.
Tensor adjoint_of(const Tensor& t);
// Identity matrices with t's batch, dtype and device.
Tensor identity_like(const Tensor& t, int64_t n);

// Dense column-major matrices: new ones; copies of t's, broadcast to the batch; t itself if it has that layout, else a copy. Nothing is recorded for
// autograd.
Tensor new_matrices(const Dims& batch, int64_t rows, int64_t cols, const Tensor& like, const char* op);
Tensor copied_matrices(const Tensor& t, const Dims& batch, const char* op);
Tensor as_matrices(const Tensor& t, const Dims& batch, const char* op);
// Dense (batch, n) vectors of the type.
Tensor new_vectors(const Dims& batch, int64_t n, DType type, const Tensor& like, const char* op);
Tensor as_vectors(const Tensor& t, const Dims& batch, const char* op);

// A call of one LAPACK routine. Pass matrices made by the functions above, in the order that ir::Lapack lists them.
class LapackCall {
 public:
  // type: dtype of the matrices, real or complex.
  LapackCall(ir::Lapack::Routine routine, const Dims& batch, DType type);
  LapackCall& reads(const Tensor& t, bool vector = false) { return add(t, false, vector); }
  LapackCall& writes(const Tensor& t, bool vector = false) { return add(t, true, vector); }
  ir::Lapack* operator->() { return &call_; }
  // Returns info: (batch), int32.
  Tensor run();

 private:
  LapackCall& add(const Tensor& t, bool written, bool vector);
  ir::Lapack call_;
  Dims batch_;
  std::vector<Tensor> reads_, writes_;  // complex tensors are viewed as pairs of reals
};

}  // namespace naru::ops
