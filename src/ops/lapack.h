// What the functions of linear algebra share: checks, matrices as LAPACK wants them, and its routines (ir::Lapack) as calls.
#pragma once

#include <string_view>
#include <vector>

#include "naru/linalg.h"
#include "naru/ops.h"
#include "ops/common.h"
#include "ops/history.h"

namespace naru::ops {

// RuntimeError unless t is a matrix or a batch of them (of square ones).
void require_matrices(const Tensor& t, std::string_view op, const char* name = "A");
void require_square(const Tensor& t, std::string_view op, const char* name = "A");
// NotImplementedError for integers, and, unless `low`, for 16-bit types.
void require_floating(const Tensor& t, std::string_view op, bool low = true);
// NotImplementedError "\"lu_cpu\" not implemented for 'Half'" unless it is float32, float64, complex64 or complex128.
bool is_lapack_type(DType type);
void require_lapack_type(const Tensor& t, const char* kernel);
// Whether B of A X = B holds vectors: it has one dimension, or the shape of A without the last.
bool is_vector_right_side(const Tensor& a, const Tensor& b);
// The device of both; RuntimeError where they are on different ones.
Device require_one_device(const Tensor& a, const Tensor& b, const char* op, const char* name_a = "A", const char* name_b = "B");
// LinAlgError, worded as for the function `api`, for the first number that is not 0. Reads them.
void check_info(const Tensor& info, std::string_view api, bool batched);

// All sizes but the last two.
Dims batch_of(const Tensor& t);
Dims with_matrix(const Dims& batch, int64_t rows, int64_t cols);
// (..., m, n) as (..., n, m).
inline Tensor flipped(const Tensor& t) { return t.transpose(-2, -1); }
// Its conjugate.
Tensor adjoint_of(const Tensor& t);
// Identity matrices of t's batch, type and device.
Tensor identity_like(const Tensor& t, int64_t n);

// Column-major matrices, dense: new ones; copies of t's, broadcast to the batch; t itself where it lies so. Nothing is recorded.
Tensor new_matrices(const Dims& batch, int64_t rows, int64_t cols, const Tensor& like, const char* op);
Tensor copied_matrices(const Tensor& t, const Dims& batch, const char* op);
Tensor as_matrices(const Tensor& t, const Dims& batch, const char* op);
// (batch, n) of the type, dense.
Tensor new_vectors(const Dims& batch, int64_t n, DType type, const Tensor& like, const char* op);
Tensor as_vectors(const Tensor& t, const Dims& batch, const char* op);

// A call of a routine for matrices made by the functions above, in the order in which ir::Lapack names them.
class LapackCall {
 public:
  // type: that of the matrices, complex or not.
  LapackCall(ir::Lapack::Routine routine, const Dims& batch, DType type);
  LapackCall& reads(const Tensor& t, bool vector = false) { return add(t, false, vector); }
  LapackCall& writes(const Tensor& t, bool vector = false) { return add(t, true, vector); }
  ir::Lapack* operator->() { return &call_; }
  // info: (batch), int32
  Tensor run();

 private:
  LapackCall& add(const Tensor& t, bool written, bool vector);
  ir::Lapack call_;
  Dims batch_;
  std::vector<Tensor> reads_, writes_;  // complex ones as pairs of reals
};

}  // namespace naru::ops
