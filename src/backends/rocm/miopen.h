// The part of AMD's MIOpen that naru uses, convolutions in its immediate mode, opened at run time. Names and numbers are the library's own
// (a test compares them with its header, if one is found).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/gpu/driver.h"
#include "backends/gpu/vendor_library.h"
#include "backends/rocm/libraries.h"
#include "ir/instruction.h"
#include "runtime/os/library.h"

namespace naru::backends::rocm {

using miopenStatus_t = int;
using miopenHandle_t = struct MiopenHandleTag*;
using miopenTensorDescriptor_t = struct MiopenTensorTag*;
using miopenConvolutionDescriptor_t = struct MiopenConvolutionTag*;
struct miopenConvSolution_t {
  float time;
  size_t workspace_size;
  uint64_t solution_id;
  int algorithm;
};

#define NARU_MIOPEN_STATUSES(F)          \
  F(miopenStatusSuccess, 0)              \
  F(miopenStatusNotInitialized, 1)       \
  F(miopenStatusInvalidValue, 2)         \
  F(miopenStatusBadParm, 3)              \
  F(miopenStatusAllocFailed, 4)          \
  F(miopenStatusInternalError, 5)        \
  F(miopenStatusNotImplemented, 6)       \
  F(miopenStatusUnknownError, 7)         \
  F(miopenStatusUnsupportedOp, 8)        \
  F(miopenStatusGpuOperationsSkipped, 9) \
  F(miopenStatusVersionMismatch, 10)

enum : int { NARU_MIOPEN_STATUSES(NARU_ENUMERATOR) };
enum : int {
  miopenHalf = 0,
  miopenFloat = 1,
  miopenBFloat16 = 5,

  miopenConvolution = 0,

  MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC = 1,
};

// Forward reads w and x and writes y, BackwardData dy and w and dx, BackwardWeights dy and x and dw.
#define NARU_MIOPEN_USE(F, use)                                                                                                            \
  F(int, miopenConvolution##use##GetSolutionCount,                                                                                         \
    (miopenHandle_t, miopenTensorDescriptor_t a, miopenTensorDescriptor_t b, miopenConvolutionDescriptor_t, miopenTensorDescriptor_t into, \
     size_t*))                                                                                                                             \
  F(int, miopenConvolution##use##GetSolution,                                                                                              \
    (miopenHandle_t, miopenTensorDescriptor_t a, miopenTensorDescriptor_t b, miopenConvolutionDescriptor_t, miopenTensorDescriptor_t into, \
     size_t most, size_t*, miopenConvSolution_t*))                                                                                         \
  F(int, miopenConvolution##use##CompileSolution,                                                                                          \
    (miopenHandle_t, miopenTensorDescriptor_t a, miopenTensorDescriptor_t b, miopenConvolutionDescriptor_t, miopenTensorDescriptor_t into, \
     uint64_t id))                                                                                                                         \
  F(int, miopenConvolution##use##Immediate,                                                                                                \
    (miopenHandle_t, miopenTensorDescriptor_t, const void* a, miopenTensorDescriptor_t, const void* b, miopenConvolutionDescriptor_t,      \
     miopenTensorDescriptor_t, void* into, void* workspace, size_t workspace_bytes, uint64_t id))

#define NARU_MIOPEN(F)                                                                                                    \
  F(int, miopenGetVersion, (size_t*, size_t*, size_t*))                                                                   \
  F(const char*, miopenGetErrorString, (int))                                                                             \
  F(int, miopenCreate, (miopenHandle_t*))                                                                                 \
  F(int, miopenDestroy, (miopenHandle_t))                                                                                 \
  F(int, miopenSetStream, (miopenHandle_t, gpu::StreamHandle))                                                            \
  F(int, miopenCreateTensorDescriptor, (miopenTensorDescriptor_t*))                                                       \
  F(int, miopenSetTensorDescriptor, (miopenTensorDescriptor_t, int type, int dims, const int* sizes, const int* strides)) \
  F(int, miopenDestroyTensorDescriptor, (miopenTensorDescriptor_t))                                                       \
  F(int, miopenCreateConvolutionDescriptor, (miopenConvolutionDescriptor_t*))                                             \
  F(int, miopenInitConvolutionNdDescriptor,                                                                               \
    (miopenConvolutionDescriptor_t, int dims, const int* padding, const int* stride, const int* dilation, int mode))      \
  F(int, miopenSetConvolutionGroupCount, (miopenConvolutionDescriptor_t, int))                                            \
  F(int, miopenSetConvolutionAttribute, (miopenConvolutionDescriptor_t, int attribute, int value))                        \
  F(int, miopenDestroyConvolutionDescriptor, (miopenConvolutionDescriptor_t))                                             \
  NARU_MIOPEN_USE(F, Forward)                                                                                             \
  NARU_MIOPEN_USE(F, BackwardData)                                                                                        \
  NARU_MIOPEN_USE(F, BackwardWeights)

struct Miopen {
  static constexpr Product kProduct = Product::Miopen;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_MIOPEN_STATUSES);
  static constexpr int kMajor = 10000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_MIOPEN)

  // The functions of one use, which have the same parameters for each, and their names.
  struct Use {
    decltype(miopenConvolutionForwardGetSolutionCount) count;
    decltype(miopenConvolutionForwardGetSolution) solutions;
    decltype(miopenConvolutionForwardCompileSolution) compile;
    decltype(miopenConvolutionForwardImmediate) run;
    const char *count_name, *solutions_name, *compile_name, *run_name;
  };
  Use of(ir::Convolution::Use use) const noexcept;

  int version() const {
    size_t major = 0, minor = 0, patch = 0;
    if (!miopenGetVersion || miopenGetVersion(&major, &minor, &patch) != miopenStatusSuccess) return 0;
    return static_cast<int>(major) * kMajor + static_cast<int>(minor) * 100 + static_cast<int>(patch);
  }
  int cuda() const { return 0; }
};

}  // namespace naru::backends::rocm
