// The part of NVIDIA's cuSOLVER that naru uses, opened at run time, so building needs no CUDA. Names and numbers are the library's own (a
// test compares them with its header, if one is found).
#pragma once

#include "backends/cuda/api.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/libraries.h"
#include "backends/gpu/vendor_library.h"
#include "runtime/os/library.h"

namespace naru::backends::cuda {

using cusolverStatus_t = int;
using cusolverDnHandle_t = struct SolverHandleTag*;
using cusolverDnParams_t = struct SolverParamsTag*;

#define NARU_CUSOLVER_STATUSES(F)                 \
  F(CUSOLVER_STATUS_SUCCESS, 0)                   \
  F(CUSOLVER_STATUS_NOT_INITIALIZED, 1)           \
  F(CUSOLVER_STATUS_ALLOC_FAILED, 2)              \
  F(CUSOLVER_STATUS_INVALID_VALUE, 3)             \
  F(CUSOLVER_STATUS_ARCH_MISMATCH, 4)             \
  F(CUSOLVER_STATUS_MAPPING_ERROR, 5)             \
  F(CUSOLVER_STATUS_EXECUTION_FAILED, 6)          \
  F(CUSOLVER_STATUS_INTERNAL_ERROR, 7)            \
  F(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED, 8) \
  F(CUSOLVER_STATUS_NOT_SUPPORTED, 9)             \
  F(CUSOLVER_STATUS_ZERO_PIVOT, 10)               \
  F(CUSOLVER_STATUS_INVALID_LICENSE, 11)          \
  F(CUSOLVER_STATUS_INVALID_WORKSPACE, 31)

enum : int { NARU_CUSOLVER_STATUSES(NARU_ENUMERATOR) };
enum : int {
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,

  CUBLAS_OP_C = 2,
  CUBLAS_SIDE_LEFT = 0,
  CUBLAS_FILL_MODE_LOWER = 0,
  CUBLAS_FILL_MODE_UPPER = 1,

  CUSOLVER_EIG_MODE_NOVECTOR = 0,
  CUSOLVER_EIG_MODE_VECTOR = 1,
};

// Functions that exist once per type; matrices are const void* here. Workspace sizes count elements of the type.
#define NARU_CUSOLVER_TYPED(F, letter, kind)                                                                                            \
  F(int, cusolverDn##letter##kind##gqr_bufferSize,                                                                                      \
    (cusolverDnHandle_t, int m, int n, int k, const void* a, int lda, const void* tau, int* work))                                      \
  F(int, cusolverDn##letter##kind##gqr,                                                                                                 \
    (cusolverDnHandle_t, int m, int n, int k, void* a, int lda, const void* tau, void* work, int work_size, int* info))                 \
  F(int, cusolverDn##letter##kind##mqr_bufferSize,                                                                                      \
    (cusolverDnHandle_t, int side, int way, int m, int n, int k, const void* a, int lda, const void* tau, const void* c, int ldc,       \
     int* work))                                                                                                                        \
  F(int, cusolverDn##letter##kind##mqr,                                                                                                 \
    (cusolverDnHandle_t, int side, int way, int m, int n, int k, const void* a, int lda, const void* tau, void* c, int ldc, void* work, \
     int work_size, int* info))                                                                                                         \
  F(int, cusolverDn##letter##potrfBatched, (cusolverDnHandle_t, int triangle, int n, void** a, int lda, int* info, int batch))

#define NARU_CUSOLVER(F)                                                                                                                  \
  F(int, cusolverGetVersion, (int*))                                                                                                      \
  F(int, cusolverDnCreate, (cusolverDnHandle_t*))                                                                                         \
  F(int, cusolverDnDestroy, (cusolverDnHandle_t))                                                                                         \
  F(int, cusolverDnSetStream, (cusolverDnHandle_t, CUstream))                                                                             \
  F(int, cusolverDnCreateParams, (cusolverDnParams_t*))                                                                                   \
  F(int, cusolverDnDestroyParams, (cusolverDnParams_t))                                                                                   \
  F(int, cusolverDnXpotrf_bufferSize,                                                                                                     \
    (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int type, const void* a, int64_t lda, int compute,                  \
     size_t* device_bytes, size_t* host_bytes))                                                                                           \
  F(int, cusolverDnXpotrf,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int type, void* a, int64_t lda, int compute, void* device,          \
     size_t device_bytes, void* host, size_t host_bytes, int* info))                                                                      \
  F(int, cusolverDnXpotrs,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t lda, int type_b,  \
     void* b, int64_t ldb, int* info))                                                                                                    \
  F(int, cusolverDnXgetrf_bufferSize,                                                                                                     \
    (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, const void* a, int64_t lda, int compute,                     \
     size_t* device_bytes, size_t* host_bytes))                                                                                           \
  F(int, cusolverDnXgetrf,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* pivots, int compute,          \
     void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                                                        \
  F(int, cusolverDnXgetrs,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int transposed, int64_t n, int64_t columns, int type, const void* a, int64_t lda,            \
     const int64_t* pivots, int type_b, void* b, int64_t ldb, int* info))                                                                 \
  F(int, cusolverDnXgeqrf_bufferSize,                                                                                                     \
    (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, const void* a, int64_t lda, int type_tau, const void* tau,   \
     int compute, size_t* device_bytes, size_t* host_bytes))                                                                              \
  F(int, cusolverDnXgeqrf,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t n, int type, void* a, int64_t lda, int type_tau, void* tau, int compute,  \
     void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                                                        \
  F(int, cusolverDnXgesvd_bufferSize,                                                                                                     \
    (cusolverDnHandle_t, cusolverDnParams_t, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type, const void* a,        \
     int64_t lda, int type_s, const void* s, int type_u, const void* u, int64_t ldu, int type_vt, const void* vt, int64_t ldvt,           \
     int compute, size_t* device_bytes, size_t* host_bytes))                                                                              \
  F(int, cusolverDnXgesvd,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type, void* a, int64_t lda, \
     int type_s, void* s, int type_u, void* u, int64_t ldu, int type_vt, void* vt, int64_t ldvt, int compute, void* device,               \
     size_t device_bytes, void* host, size_t host_bytes, int* info))                                                                      \
  F(int, cusolverDnXsyevd_bufferSize,                                                                                                     \
    (cusolverDnHandle_t, cusolverDnParams_t, int vectors, int triangle, int64_t n, int type, const void* a, int64_t lda, int type_w,      \
     const void* w, int compute, size_t* device_bytes, size_t* host_bytes))                                                               \
  F(int, cusolverDnXsyevd,                                                                                                                \
    (cusolverDnHandle_t, cusolverDnParams_t, int vectors, int triangle, int64_t n, int type, void* a, int64_t lda, int type_w, void* w,   \
     int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                                           \
  NARU_CUSOLVER_TYPED(F, S, or)                                                                                                           \
  NARU_CUSOLVER_TYPED(F, D, or)                                                                                                           \
  NARU_CUSOLVER_TYPED(F, C, un)                                                                                                           \
  NARU_CUSOLVER_TYPED(F, Z, un)

struct Cusolver {
  static constexpr Product kProduct = Product::Cusolver;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_CUSOLVER_STATUSES);
  static constexpr int kMajor = 1000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_CUSOLVER)

  int version() const {
    int v = 0;
    return cusolverGetVersion && cusolverGetVersion(&v) == CUSOLVER_STATUS_SUCCESS ? v : 0;
  }
  // cuSOLVER 11 belongs to CUDA 11 and 12.
  int cuda() const { return version() >= 12 * kMajor ? version() / kMajor + 1 : 11; }
};

}  // namespace naru::backends::cuda
