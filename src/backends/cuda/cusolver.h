// The part of NVIDIA's cuSOLVER that is used here, opened at run time: nothing of it is needed to build. Names and numbers are the library's own (a
// test compares them with its header, where one is found).
#pragma once

#include <string>

#include "backends/cuda/api.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/vendor_library.h"
#include "runtime/library.h"

namespace naru::backends::cuda {

using cusolverStatus_t = int;
using cusolverDnHandle_t = struct SolverHandleTag*;
using cusolverDnParams_t = struct SolverParamsTag*;

enum : int {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_ARCH_MISMATCH = 4,
  CUSOLVER_STATUS_MAPPING_ERROR = 5,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
  CUSOLVER_STATUS_INTERNAL_ERROR = 7,
  CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
  CUSOLVER_STATUS_NOT_SUPPORTED = 9,
  CUSOLVER_STATUS_ZERO_PIVOT = 10,
  CUSOLVER_STATUS_INVALID_LICENSE = 11,
  CUSOLVER_STATUS_INVALID_WORKSPACE = 31,

  CUDA_C_32F = 4,
  CUDA_C_64F = 5,

  CUBLAS_OP_C = 2,
  CUBLAS_FILL_MODE_LOWER = 0,
  CUBLAS_FILL_MODE_UPPER = 1,
};

#define NARU_CUSOLVER(F)                                                                                                                 \
  F(cusolverGetVersion, (int*))                                                                                                          \
  F(cusolverDnCreate, (cusolverDnHandle_t*))                                                                                             \
  F(cusolverDnDestroy, (cusolverDnHandle_t))                                                                                             \
  F(cusolverDnSetStream, (cusolverDnHandle_t, CUstream))                                                                                 \
  F(cusolverDnCreateParams, (cusolverDnParams_t*))                                                                                       \
  F(cusolverDnDestroyParams, (cusolverDnParams_t))                                                                                       \
  F(cusolverDnXpotrf_bufferSize, (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int type, const void* a, int64_t lda, \
                                  int compute, size_t* device_bytes, size_t* host_bytes))                                                \
  F(cusolverDnXpotrf, (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int type, void* a, int64_t lda, int compute,     \
                       void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                                     \
  F(cusolverDnXpotrs, (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int64_t columns, int type, const void* a,        \
                       int64_t lda, int type_b, void* b, int64_t ldb, int* info))                                                        \
  F(cusolverDnXgetrf_bufferSize, (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, const void* a, int64_t lda,    \
                                  int compute, size_t* device_bytes, size_t* host_bytes))                                                \
  F(cusolverDnXgetrf, (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* pivots,    \
                       int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                        \
  F(cusolverDnXgetrs, (cusolverDnHandle_t, cusolverDnParams_t, int transposed, int64_t n, int64_t columns, int type, const void* a,      \
                       int64_t lda, const int64_t* pivots, int type_b, void* b, int64_t ldb, int* info))

struct Cusolver {
  static constexpr Product kProduct = Product::Cusolver;
  runtime::Library library;
#define NARU_DECLARE(name, parameters) cusolverStatus_t(*name) parameters = nullptr;
  NARU_CUSOLVER(NARU_DECLARE)
#undef NARU_DECLARE

  void find();
  std::string name() const;
  int cuda() const;
};
// "CUSOLVER_STATUS_NOT_SUPPORTED"
std::string cusolver_status_name(cusolverStatus_t status);

}  // namespace naru::backends::cuda
