// The part of NVIDIA's cuBLASLt that naru uses, opened at run time, so building needs no CUDA. Names and numbers are the library's own (a
// test compares them with its header, if one is found).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/libraries.h"
#include "backends/gpu/blaslt.h"

namespace naru::backends::cuda {

using cublasStatus_t = int;
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
static_assert(CUDA_R_32F == gpu::kLtF32 && CUDA_R_64F == gpu::kLtF64 && CUDA_R_16F == gpu::kLtF16 && CUDA_R_16BF == gpu::kLtBF16);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(cublasLtMatmulAlgo_t) + sizeof(gpu::LtProposal));

struct CublasLt : gpu::LtFunctions {
  static constexpr Product kProduct = Product::CublasLt;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_CUBLAS_STATUSES);
  static constexpr int kMajor = 10000;
  static constexpr gpu::LtNumbers kNumbers{
      .prefix = "cublasLt",
      .language = "CUDA",
      .statuses = kStatuses,
      .allocation_failed = CUBLAS_STATUS_ALLOC_FAILED,
      .invalid_value = CUBLAS_STATUS_INVALID_VALUE,
      .arch_mismatch = CUBLAS_STATUS_ARCH_MISMATCH,
      .not_supported = CUBLAS_STATUS_NOT_SUPPORTED,
      .algorithm_bytes = sizeof(cublasLtMatmulAlgo_t),
      .compute_f32 = CUBLAS_COMPUTE_32F,
      .compute_f64 = CUBLAS_COMPUTE_64F,
      .compute_tf32 = CUBLAS_COMPUTE_32F_FAST_TF32,
      .as_it_is = CUBLAS_OP_N,
      .transposed = CUBLAS_OP_T,
      .transpose_a = CUBLASLT_MATMUL_DESC_TRANSA,
      .transpose_b = CUBLASLT_MATMUL_DESC_TRANSB,
      .epilogue = CUBLASLT_MATMUL_DESC_EPILOGUE,
      .bias = CUBLASLT_MATMUL_DESC_BIAS_POINTER,
      .epilogue_of_bias = CUBLASLT_EPILOGUE_BIAS,
      .batch_count = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
      .batch_stride = CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
      .most_workspace = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      .reductions = CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      .reduced_in_compute_type = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
      .reduced_any_way = CUBLASLT_REDUCTION_SCHEME_MASK,
      .alignments = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES},
  };
  size_t (*cublasLtGetVersion)() = nullptr;

  void find() {
    library.find(cublasLtGetVersion, "cublasLtGetVersion");
    LtFunctions::find(kNumbers);
  }
  int version() const { return cublasLtGetVersion ? static_cast<int>(cublasLtGetVersion()) : 0; }
  int cuda() const { return version() / kMajor; }
};

}  // namespace naru::backends::cuda
