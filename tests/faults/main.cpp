// Uses fake drivers instead of the machine's, and naru's own kernels instead of libraries, which have faults of their own.
#include <gtest/gtest.h>

#include <cstdlib>

#include "naru/device/fallback.h"
#include "naru/device/precision.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("NARU_CUDA_LIBRARY", NARU_FAKES "/libcuda.so", 1);
  setenv("NARU_NVRTC_LIBRARY", NARU_FAKES "/libnvrtc.so", 1);
  setenv("NARU_CUBLASLT_LIBRARY", NARU_FAKES "/libcublasLt.so", 1);
  setenv("NARU_CUFFT_LIBRARY", NARU_FAKES "/libcufft.so", 1);
  setenv("NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libcusolver.so", 1);
  setenv("NARU_CUDNN_LIBRARY", NARU_FAKES "/libcudnn.so", 1);
  setenv("NARU_NCCL_LIBRARY", NARU_FAKES "/libnccl.so", 1);
  setenv("NARU_CUDA_DEVICE_NODE", "/dev/null", 1);
  setenv("NARU_FAKE_GPUS", "0000:01:00.0 a 9.0 512 H100", 1);
  setenv("NARU_OPENCL_LIBRARY", NARU_FAKES "/libopencl.so", 1);
  setenv("NARU_FAKE_OPENCL_HEADERS", "own", 1);
  setenv("NARU_OPENCL_CPU", "1", 1);
  naru::use_deterministic_algorithms(true);
  naru::set_fallback_policy(naru::FallbackPolicy::Count);
  return RUN_ALL_TESTS();
}
