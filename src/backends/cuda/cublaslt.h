// The part of NVIDIA's cuBLASLt that naru uses, opened at run time, so building needs no CUDA. Names and numbers are the library's own (a
// test compares them with its header, if one is found).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/api.h"
#include "backends/cuda/libraries.h"
#include "backends/gpu/vendor_library.h"
#include "runtime/os/library.h"

namespace naru::backends::cuda {

using cublasStatus_t = int;
using cublasLtHandle_t = struct LtHandleTag*;
using cublasLtMatmulDesc_t = struct LtMatmulTag*;
using cublasLtMatrixLayout_t = struct LtLayoutTag*;
using cublasLtMatmulPreference_t = struct LtPreferenceTag*;
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

#define NARU_CUBLAS_STATUSES(F)         \
  F(CUBLAS_STATUS_SUCCESS, 0)           \
  F(CUBLAS_STATUS_NOT_INITIALIZED, 1)   \
  F(CUBLAS_STATUS_ALLOC_FAILED, 3)      \
  F(CUBLAS_STATUS_INVALID_VALUE, 7)     \
  F(CUBLAS_STATUS_ARCH_MISMATCH, 8)     \
  F(CUBLAS_STATUS_MAPPING_ERROR, 11)    \
  F(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
  F(CUBLAS_STATUS_INTERNAL_ERROR, 14)   \
  F(CUBLAS_STATUS_NOT_SUPPORTED, 15)    \
  F(CUBLAS_STATUS_LICENSE_ERROR, 16)

enum : int { NARU_CUBLAS_STATUSES(NARU_ENUMERATOR) };
enum : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_16BF = 14,

  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,

  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,

  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_EPILOGUE_BIAS = 4,

  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,

  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
  CUBLASLT_REDUCTION_SCHEME_MASK = 7,
};

#define NARU_CUBLASLT(F)                                                                                                     \
  F(size_t, cublasLtGetVersion, ())                                                                                          \
  F(int, cublasLtCreate, (cublasLtHandle_t*))                                                                                \
  F(int, cublasLtDestroy, (cublasLtHandle_t))                                                                                \
  F(int, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t*, int compute_type, int scale_type))                                \
  F(int, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t))                                                                  \
  F(int, cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t, int attribute, const void* value, size_t bytes))             \
  F(int, cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t*, int type, uint64_t rows, uint64_t cols, int64_t ld))          \
  F(int, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t))                                                              \
  F(int, cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t, int attribute, const void* value, size_t bytes))         \
  F(int, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t*))                                                      \
  F(int, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t))                                                      \
  F(int, cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t, int attribute, const void* value, size_t bytes)) \
  F(int, cublasLtMatmulAlgoGetHeuristic,                                                                                     \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,   \
     cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t*, int* found))        \
  F(int, cublasLtMatmul,                                                                                                     \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a, cublasLtMatrixLayout_t, const void* b,        \
     cublasLtMatrixLayout_t, const void* beta, const void* c, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t,       \
     const cublasLtMatmulAlgo_t*, void* workspace, size_t workspace_bytes, CUstream))

struct CublasLt {
  static constexpr Product kProduct = Product::CublasLt;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_CUBLAS_STATUSES);
  static constexpr int kMajor = 10000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_CUBLASLT)

  int version() const { return cublasLtGetVersion ? static_cast<int>(cublasLtGetVersion()) : 0; }
  int cuda() const { return version() / kMajor; }
};

// A product in cuBLASLt's column-major terms: D (m, n) = op(A) op(B), plus `bias` along the rows of D; and everything else that the choice
// of its algorithm depends on.
struct LtMatMul {
  struct Matrix {
    bool transposed = false;
    int64_t ld = 0, batch_stride = 0;
    uint32_t alignment = 1;  // of the address, in bytes
    auto operator<=>(const Matrix&) const = default;
  };
  int type = 0, compute = 0, scale = 0;  // types of the elements, of the sums, of alpha and beta
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, d;
  uint32_t bias_alignment = 0;  // 0: no bias
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  auto operator<=>(const LtMatMul&) const = default;
};

// The library's descriptors of a product. They use host memory only and need no device.
class LtDescriptors {
 public:
  // Throws RuntimeError if the library rejects one.
  LtDescriptors(const CublasLt& lt, const LtMatMul& product);
  void set_bias(const void* bias);
  // Selects the library's best algorithm within `workspace` bytes; false if it has none. Call set_bias first: the choice depends on its
  // alignment.
  bool choose(cublasLtHandle_t handle, size_t workspace);
  size_t workspace() const noexcept { return chosen_.workspaceSize; }
  // d = a b (+ bias): enqueues the work on the stream.
  cublasStatus_t run(cublasLtHandle_t handle, const void* a, const void* b, void* d, void* workspace, CUstream stream) const;

 private:
  template <class T>
  using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  Owned<LtLayoutTag> layout(uint64_t rows, uint64_t cols, const LtMatMul::Matrix& matrix) const;
  template <class T, class V>
  void set(cublasStatus_t (*function)(T*, int, const void*, size_t), T* object, int attribute, V value) const;

  const CublasLt& lt_;
  const LtMatMul product_;
  Owned<LtMatmulTag> operation_;
  Owned<LtLayoutTag> a_, b_, d_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace naru::backends::cuda
