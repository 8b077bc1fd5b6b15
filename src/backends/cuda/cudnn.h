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
using cudnnBackendDescriptor_t = void*;
struct cudnnConvolutionAlgoPerf_t {
  int algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  int determinism, mathType;
  int reserved[3];
};

#define NARU_CUDNN_STATUSES(F)                                     \
  F(CUDNN_STATUS_SUCCESS, 0)                                       \
  F(CUDNN_STATUS_NOT_INITIALIZED, 1001)                            \
  F(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)                \
  F(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, 1003)             \
  F(CUDNN_STATUS_DEPRECATED, 1004)                                 \
  F(CUDNN_STATUS_LICENSE_ERROR, 1005)                              \
  F(CUDNN_STATUS_RUNTIME_IN_PROGRESS, 1006)                        \
  F(CUDNN_STATUS_RUNTIME_FP_OVERFLOW, 1007)                        \
  F(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, 1008)                  \
  F(CUDNN_STATUS_BAD_PARAM, 2000)                                  \
  F(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, 2002)                     \
  F(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, 2003)               \
  F(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, 2004)                    \
  F(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, 2005)                     \
  F(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, 2006)                \
  F(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, 2007)                  \
  F(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, 2008)                   \
  F(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, 2009)               \
  F(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, 2010)                   \
  F(CUDNN_STATUS_NOT_SUPPORTED, 3000)                              \
  F(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, 3001)                \
  F(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, 3002)                        \
  F(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, 3003)                    \
  F(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, 3004)                       \
  F(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)     \
  F(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART, 3006)          \
  F(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, 3007)                \
  F(CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, 3008) \
  F(CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)       \
  F(CUDNN_STATUS_INTERNAL_ERROR, 4000)                             \
  F(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4001)          \
  F(CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE, 4002)            \
  F(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)      \
  F(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004)    \
  F(CUDNN_STATUS_EXECUTION_FAILED, 5000)                           \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, 5001)               \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUBLAS, 5002)                    \
  F(CUDNN_STATUS_EXECUTION_FAILED_CUDART, 5003)

enum : int { NARU_CUDNN_STATUSES(NARU_ENUMERATOR) };
enum : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_BOOLEAN = 11,

  CUDNN_TENSOR_NCHW = 0,
  CUDNN_TENSOR_NHWC = 1,

  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_FMA_MATH = 3,

  CUDNN_CROSS_CORRELATION = 1,
  CUDNN_DETERMINISTIC = 1,
};

// Graphs of operations, which the library makes into one kernel: kinds of descriptors, their attributes, and the types and values of these.
enum : int {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,

  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_AXIS = 9,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,
  CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
  CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
  CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,

  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,

  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_IDENTITY = 21,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_GEN_INDEX = 501,
  CUDNN_POINTWISE_BINARY_SELECT = 601,
  CUDNN_REDUCE_TENSOR_ADD = 0,
  CUDNN_REDUCE_TENSOR_MAX = 3,
  CUDNN_HEUR_MODE_B = 1,
  CUDNN_HEUR_MODE_FALLBACK = 2,
  CUDNN_HEUR_MODE_A = 3,
};

// A use of the convolution: its algorithms, the memory that one wants, its work; a, b, d: the descriptors of what it reads and of what it writes.
#define NARU_CUDNN_USE(F, use, A, B, D)                                                                                             \
  F(int, cudnnGetConvolution##use##Algorithm_v7,                                                                                    \
    (cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, D, int wanted, int* found, cudnnConvolutionAlgoPerf_t*))                    \
  F(int, cudnnGetConvolution##use##WorkspaceSize, (cudnnHandle_t, A, B, cudnnConvolutionDescriptor_t, D, int algo, size_t* bytes))  \
  F(int, cudnnConvolution##use,                                                                                                     \
    (cudnnHandle_t, const void* alpha, A, const void* a, B, const void* b, cudnnConvolutionDescriptor_t, int algo, void* workspace, \
     size_t workspace_bytes, const void* beta, D, void* d))

#define NARU_CUDNN(F)                                                                                                                   \
  F(size_t, cudnnGetVersion, ())                                                                                                        \
  F(size_t, cudnnGetCudartVersion, ())                                                                                                  \
  F(int, cudnnCreate, (cudnnHandle_t*))                                                                                                 \
  F(int, cudnnDestroy, (cudnnHandle_t))                                                                                                 \
  F(int, cudnnSetStream, (cudnnHandle_t, CUstream))                                                                                     \
  F(int, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor_t*))                                                                       \
  F(int, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor_t))                                                                       \
  F(int, cudnnSetTensorNdDescriptor, (cudnnTensorDescriptor_t, int type, int dims, const int* sizes, const int* strides))               \
  F(int, cudnnCreateFilterDescriptor, (cudnnFilterDescriptor_t*))                                                                       \
  F(int, cudnnDestroyFilterDescriptor, (cudnnFilterDescriptor_t))                                                                       \
  F(int, cudnnSetFilterNdDescriptor, (cudnnFilterDescriptor_t, int type, int format, int dims, const int* sizes))                       \
  F(int, cudnnCreateConvolutionDescriptor, (cudnnConvolutionDescriptor_t*))                                                             \
  F(int, cudnnDestroyConvolutionDescriptor, (cudnnConvolutionDescriptor_t))                                                             \
  F(int, cudnnSetConvolutionNdDescriptor,                                                                                               \
    (cudnnConvolutionDescriptor_t, int dims, const int* padding, const int* stride, const int* dilation, int mode, int compute))        \
  F(int, cudnnSetConvolutionGroupCount, (cudnnConvolutionDescriptor_t, int groups))                                                     \
  F(int, cudnnSetConvolutionMathType, (cudnnConvolutionDescriptor_t, int math))                                                         \
  F(int, cudnnBackendCreateDescriptor, (int kind, cudnnBackendDescriptor_t*))                                                           \
  F(int, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t))                                                                     \
  F(int, cudnnBackendFinalize, (cudnnBackendDescriptor_t))                                                                              \
  F(int, cudnnBackendSetAttribute, (cudnnBackendDescriptor_t, int attribute, int type, int64_t count, const void* elements))            \
  F(int, cudnnBackendGetAttribute, (cudnnBackendDescriptor_t, int attribute, int type, int64_t wanted, int64_t* count, void* elements)) \
  F(int, cudnnBackendExecute, (cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack))                            \
  NARU_CUDNN_USE(F, Forward, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t)                                 \
  NARU_CUDNN_USE(F, BackwardData, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t)                            \
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
