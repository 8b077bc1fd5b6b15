// The part of NVIDIA's cuFFT that naru uses, opened at run time, so building needs no CUDA. Names and numbers are the library's own (a test
// compares them with its header, if one is found).
#pragma once

#include "backends/cuda/api.h"
#include "backends/cuda/libraries.h"
#include "backends/gpu/vendor_library.h"
#include "runtime/os/library.h"

namespace naru::backends::cuda {

using cufftResult = int;
using cufftHandle = int;

#define NARU_CUFFT_STATUSES(F) \
  F(CUFFT_SUCCESS, 0)          \
  F(CUFFT_INVALID_PLAN, 1)     \
  F(CUFFT_ALLOC_FAILED, 2)     \
  F(CUFFT_INVALID_TYPE, 3)     \
  F(CUFFT_INVALID_VALUE, 4)    \
  F(CUFFT_INTERNAL_ERROR, 5)   \
  F(CUFFT_EXEC_FAILED, 6)      \
  F(CUFFT_SETUP_FAILED, 7)     \
  F(CUFFT_INVALID_SIZE, 8)     \
  F(CUFFT_UNALIGNED_DATA, 9)   \
  F(CUFFT_INVALID_DEVICE, 11)  \
  F(CUFFT_NO_WORKSPACE, 13)    \
  F(CUFFT_NOT_IMPLEMENTED, 14) \
  F(CUFFT_NOT_SUPPORTED, 16)

enum : int { NARU_CUFFT_STATUSES(NARU_ENUMERATOR) };
enum : int {
  CUFFT_FORWARD = -1,
  CUFFT_INVERSE = 1,

  CUFFT_C2C = 0x29,
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_Z2Z = 0x69,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
};

#define NARU_CUFFT(F)                                                                                                            \
  F(int, cufftGetVersion, (int*))                                                                                                \
  F(int, cufftCreate, (cufftHandle*))                                                                                            \
  F(int, cufftDestroy, (cufftHandle))                                                                                            \
  F(int, cufftSetAutoAllocation, (cufftHandle, int on))                                                                          \
  F(int, cufftMakePlanMany64,                                                                                                    \
    (cufftHandle, int rank, long long* n, long long* in_embed, long long in_stride, long long in_distance, long long* out_embed, \
     long long out_stride, long long out_distance, int type, long long batch, size_t* work))                                     \
  F(int, cufftSetStream, (cufftHandle, CUstream))                                                                                \
  F(int, cufftSetWorkArea, (cufftHandle, void*))                                                                                 \
  F(int, cufftExecC2C, (cufftHandle, void* in, void* out, int direction))                                                        \
  F(int, cufftExecR2C, (cufftHandle, void* in, void* out))                                                                       \
  F(int, cufftExecC2R, (cufftHandle, void* in, void* out))                                                                       \
  F(int, cufftExecZ2Z, (cufftHandle, void* in, void* out, int direction))                                                        \
  F(int, cufftExecD2Z, (cufftHandle, void* in, void* out))                                                                       \
  F(int, cufftExecZ2D, (cufftHandle, void* in, void* out))

struct Cufft {
  static constexpr Product kProduct = Product::Cufft;
  static constexpr gpu::Status kStatuses[] = NARU_STATUSES(NARU_CUFFT_STATUSES);
  static constexpr int kMajor = 1000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_CUFFT)

  int version() const {
    int v = 0;
    return cufftGetVersion && cufftGetVersion(&v) == CUFFT_SUCCESS ? v : 0;
  }
  // cuFFT 10 belongs to CUDA 11.
  int cuda() const { return version() / kMajor + 1; }
};

}  // namespace naru::backends::cuda
