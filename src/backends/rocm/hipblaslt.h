// The part of AMD's hipBLASLt (of ROCm 6 and newer) that naru uses, opened at run time. Names and numbers are the library's own (a test
// compares them with its header, if one is found).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/gpu/blaslt.h"
#include "backends/rocm/libraries.h"

namespace naru::backends::rocm {

using hipblasStatus_t = int;
struct hipblasLtMatmulAlgo_t {
  uint8_t data[16];
  size_t max_workspace_bytes;
};
struct hipblasLtMatmulHeuristicResult_t {
  hipblasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  hipblasStatus_t state;
  float wavesCount;
  int reserved[4];
};

#define NARU_HIPBLAS_STATUSES(F)         \
  F(HIPBLAS_STATUS_SUCCESS, 0)           \
  F(HIPBLAS_STATUS_NOT_INITIALIZED, 1)   \
  F(HIPBLAS_STATUS_ALLOC_FAILED, 2)      \
  F(HIPBLAS_STATUS_INVALID_VALUE, 3)     \
  F(HIPBLAS_STATUS_MAPPING_ERROR, 4)     \
  F(HIPBLAS_STATUS_EXECUTION_FAILED, 5)  \
  F(HIPBLAS_STATUS_INTERNAL_ERROR, 6)    \
  F(HIPBLAS_STATUS_NOT_SUPPORTED, 7)     \
  F(HIPBLAS_STATUS_ARCH_MISMATCH, 8)     \
  F(HIPBLAS_STATUS_HANDLE_IS_NULLPTR, 9) \
  F(HIPBLAS_STATUS_INVALID_ENUM, 10)     \
  F(HIPBLAS_STATUS_UNKNOWN, 11)

enum : int { NARU_HIPBLAS_STATUSES(NARU_ENUMERATOR) };
enum : int {
  HIP_R_32F = 0,
  HIP_R_64F = 1,
  HIP_R_16F = 2,
  HIP_R_16BF = 14,

  HIPBLAS_COMPUTE_32F = 2,
  HIPBLAS_COMPUTE_32F_FAST_TF32 = 6,
  HIPBLAS_COMPUTE_64F = 7,

  HIPBLAS_OP_N = 111,
  HIPBLAS_OP_T = 112,

  HIPBLASLT_MATMUL_DESC_TRANSA = 0,
  HIPBLASLT_MATMUL_DESC_TRANSB = 1,
  HIPBLASLT_MATMUL_DESC_EPILOGUE = 2,
  HIPBLASLT_MATMUL_DESC_BIAS_POINTER = 3,
  HIPBLASLT_EPILOGUE_BIAS = 4,

  HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 0,
  HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 1,

  HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
};
static_assert(HIP_R_32F == gpu::kLtF32 && HIP_R_64F == gpu::kLtF64 && HIP_R_16F == gpu::kLtF16 && HIP_R_16BF == gpu::kLtBF16);
static_assert(offsetof(hipblasLtMatmulHeuristicResult_t, workspaceSize) == sizeof(hipblasLtMatmulAlgo_t) &&
              sizeof(hipblasLtMatmulHeuristicResult_t) == sizeof(hipblasLtMatmulAlgo_t) + sizeof(gpu::LtProposal));

struct HipblasLt : gpu::LtFunctions {
  static constexpr Product kProduct = Product::HipblasLt;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_HIPBLAS_STATUSES);
  static constexpr int kMajor = 10000;
  static constexpr gpu::LtNumbers kNumbers{
      .prefix = "hipblasLt",
      .language = "HIP",
      .statuses = kStatuses,
      .allocation_failed = HIPBLAS_STATUS_ALLOC_FAILED,
      .invalid_value = HIPBLAS_STATUS_INVALID_VALUE,
      .arch_mismatch = HIPBLAS_STATUS_ARCH_MISMATCH,
      .not_supported = HIPBLAS_STATUS_NOT_SUPPORTED,
      .algorithm_bytes = sizeof(hipblasLtMatmulAlgo_t),
      .compute_f32 = HIPBLAS_COMPUTE_32F,
      .compute_f64 = HIPBLAS_COMPUTE_64F,
      .compute_tf32 = HIPBLAS_COMPUTE_32F_FAST_TF32,
      .as_it_is = HIPBLAS_OP_N,
      .transposed = HIPBLAS_OP_T,
      .transpose_a = HIPBLASLT_MATMUL_DESC_TRANSA,
      .transpose_b = HIPBLASLT_MATMUL_DESC_TRANSB,
      .epilogue = HIPBLASLT_MATMUL_DESC_EPILOGUE,
      .bias = HIPBLASLT_MATMUL_DESC_BIAS_POINTER,
      .epilogue_of_bias = HIPBLASLT_EPILOGUE_BIAS,
      .batch_count = HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
      .batch_stride = HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
      .most_workspace = HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      .reductions = -1,
      .reduced_in_compute_type = 0,
      .reduced_any_way = 0,
      .alignments = {-1, -1, -1, -1},
  };

  void find() { LtFunctions::find(kNumbers); }
  int version() const { return 0; }  // it tells only with a handle, which needs a device
  int cuda() const { return 0; }
};

}  // namespace naru::backends::rocm
