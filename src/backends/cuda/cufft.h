// The part of NVIDIA's cuFFT that is used here, opened at run time: nothing of it is needed to build. Names and numbers are the library's own (a test
// compares them with its header, where one is found).
#pragma once

#include <string>

#include "backends/cuda/api.h"
#include "backends/cuda/vendor_library.h"
#include "runtime/library.h"

namespace naru::backends::cuda {

using cufftResult = int;
using cufftHandle = int;

enum : int {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_UNALIGNED_DATA = 9,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16,

  CUFFT_FORWARD = -1,
  CUFFT_INVERSE = 1,

  CUFFT_C2C = 0x29,
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_Z2Z = 0x69,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
};

#define NARU_CUFFT(F)                                                                                                                   \
  F(cufftGetVersion, (int*))                                                                                                            \
  F(cufftCreate, (cufftHandle*))                                                                                                        \
  F(cufftDestroy, (cufftHandle))                                                                                                        \
  F(cufftSetAutoAllocation, (cufftHandle, int on))                                                                                      \
  F(cufftMakePlanMany64, (cufftHandle, int rank, long long* n, long long* in_embed, long long in_stride, long long in_distance,         \
                          long long* out_embed, long long out_stride, long long out_distance, int type, long long batch, size_t* work)) \
  F(cufftSetStream, (cufftHandle, CUstream))                                                                                            \
  F(cufftSetWorkArea, (cufftHandle, void*))                                                                                             \
  F(cufftExecC2C, (cufftHandle, void* in, void* out, int direction))                                                                    \
  F(cufftExecR2C, (cufftHandle, void* in, void* out))                                                                                   \
  F(cufftExecC2R, (cufftHandle, void* in, void* out))                                                                                   \
  F(cufftExecZ2Z, (cufftHandle, void* in, void* out, int direction))                                                                    \
  F(cufftExecD2Z, (cufftHandle, void* in, void* out))                                                                                   \
  F(cufftExecZ2D, (cufftHandle, void* in, void* out))

struct Cufft {
  static constexpr Product kProduct = Product::Cufft;
  runtime::Library library;
#define NARU_DECLARE(name, parameters) cufftResult(*name) parameters = nullptr;
  NARU_CUFFT(NARU_DECLARE)
#undef NARU_DECLARE

  void find();
  std::string name() const;
  int cuda() const;
};
// "CUFFT_INVALID_SIZE"
std::string cufft_status_name(cufftResult status);

}  // namespace naru::backends::cuda
