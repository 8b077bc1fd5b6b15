// The part of NVIDIA's cuDNN 9 that is used here, opened at run time: nothing of it is needed to build. Names and numbers are the library's own (a test
// compares them with its header, where one is found). Functions for convolutions have one type for the numbers of algorithms, which there are three of.
#pragma once

#include "backends/cuda/api.h"
#include "backends/cuda/vendor_library.h"
#include "runtime/library.h"

namespace naru::backends::cuda {

using cudnnStatus_t = int;
using cudnnHandle_t = struct DnnHandleTag*;
using cudnnTensorDescriptor_t = struct DnnTensorTag*;
using cudnnFilterDescriptor_t = struct DnnFilterTag*;
using cudnnConvolutionDescriptor_t = struct DnnConvolutionTag*;
struct cudnnConvolutionAlgoPerf_t {
  int algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  int determinism, mathType;
  int reserved[3];
};

#define NARU_CUDNN_STATUSES(F)                                  \
  F(CUDNN_STATUS_SUCCESS, 0)                                    \
  F(CUDNN_STATUS_NOT_INITIALIZED, 1001)                         \
  F(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)             \
  F(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, 1003)          \
  F(CUDNN_STATUS_DEPRECATED, 1004)                              \
  F(CUDNN_STATUS_LICENSE_ERROR, 1005)                           \
  F(CUDNN_STATUS_RUNTIME_IN_PROGRESS, 1006)                     \
  F(CUDNN_STATUS_RUNTIME_FP_OVERFLOW, 1007)                     \
  F(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, 1008)               \
  F(CUDNN_STATUS_BAD_PARAM, 2000)                               \
  F(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, 2002)                  \
  F(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, 2003)            \
  F(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, 2004)                 \
  F(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, 2005)                  \
  F(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, 2006)             \
  F(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, 2007)               \
  F(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, 2008)                \
  F(CUDNN_STATUS_NOT_SUPPORTED, 3000)                           \
  F(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, 3001)             \
  F(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, 3002)                     \
  F(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, 3003)                 \
  F(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, 3004)                    \
  F(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)  \
  F(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART, 3006)       \
  F(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, 3007)             \
  F(CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)    \
  F(CUDNN_STATUS_INTERNAL_ERROR, 4000)                          \
  F(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4001)       \
  F(CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE, 4002)         \
  F(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)   \
  F(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004) \
  F(CUDNN_STATUS_EXECUTION_FAILED, 5000)                        \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, 5001)            \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUBLAS, 5002)                 \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUDART, 5003)

enum : int { NARU_CUDNN_STATUSES(NARU_ENUMERATOR) };
enum : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,

  CUDNN_TENSOR_NCHW = 0,
  CUDNN_TENSOR_NHWC = 1,

  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_FMA_MATH = 3,

  CUDNN_CROSS_CORRELATION = 1,
  CUDNN_DETERMINISTIC = 1,
};

// A use of the convolution: its algorithms, the memory that one wants, its work; a, b, d: the descriptors of what it reads and of what it writes.
#define NARU_CUDNN_USE(F, use, A, B, D)                                                                                             \
  F(int, cudnnGetConvolution##use##Algorithm_v7,                                                                                    \
    (cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, D, int wanted, int* found, cudnnConvolutionAlgoPerf_t*))                    \
  F(int, cudnnGetConvolution##use##WorkspaceSize, (cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, D, int algo, size_t* bytes))  \
  F(int, cudnnConvolution##use,                                                                                                     \
    (cudnnHandle_t, const void* alpha, A, const void* a, B, const void* b, cudnnConvolutionDescriptor_t, int algo, void* workspace, \
     size_t workspace_bytes, const void* beta, D, void* d))

#define NARU_CUDNN(F)                                                                                                            \
  F(size_t, cudnnGetVersion, ())                                                                                                 \
  F(size_t, cudnnGetCudartVersion, ())                                                                                           \
  F(int, cudnnCreate, (cudnnHandle_t*))                                                                                          \
  F(int, cudnnDestroy, (cudnnHandle_t))                                                                                          \
  F(int, cudnnSetStream, (cudnnHandle_t, CUstream))                                                                              \
  F(int, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor_t*))                                                                \
  F(int, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor_t))                                                                \
  F(int, cudnnSetTensorNdDescriptor, (cudnnTensorDescriptor_t, int type, int dims, const int* sizes, const int* strides))        \
  F(int, cudnnCreateFilterDescriptor, (cudnnFilterDescriptor_t*))                                                                \
  F(int, cudnnDestroyFilterDescriptor, (cudnnFilterDescriptor_t))                                                                \
  F(int, cudnnSetFilterNdDescriptor, (cudnnFilterDescriptor_t, int type, int format, int dims, const int* sizes))                \
  F(int, cudnnCreateConvolutionDescriptor, (cudnnConvolutionDescriptor_t*))                                                      \
  F(int, cudnnDestroyConvolutionDescriptor, (cudnnConvolutionDescriptor_t))                                                      \
  F(int, cudnnSetConvolutionNdDescriptor,                                                                                        \
    (cudnnConvolutionDescriptor_t, int dims, const int* padding, const int* stride, const int* dilation, int mode, int compute)) \
  F(int, cudnnSetConvolutionGroupCount, (cudnnConvolutionDescriptor_t, int groups))                                              \
  F(int, cudnnSetConvolutionMathType, (cudnnConvolutionDescriptor_t, int math))                                                  \
  NARU_CUDNN_USE(F, Forward, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t)                          \
  NARU_CUDNN_USE(F, BackwardData, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t)                     \
  NARU_CUDNN_USE(F, BackwardFilter, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t)

struct Cudnn {
  static constexpr Product kProduct = Product::Cudnn;
  static constexpr Status kStatuses[] = NARU_STATUSES(NARU_CUDNN_STATUSES);
  static constexpr int kMajor = 10000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_CUDNN)

  int version() const { return cudnnGetVersion ? static_cast<int>(cudnnGetVersion()) : 0; }
  int cuda() const { return cudnnGetCudartVersion ? static_cast<int>(cudnnGetCudartVersion() / 1000) : 0; }
};

}  // namespace naru::backends::cuda
