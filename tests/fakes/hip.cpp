// What HIP has in place of CUDA's contexts, for the fake HIP driver: the rest is the fake CUDA driver's (cuda.cpp) under HIP's names.
#include "cuda_state.h"

int fake_copy_between(Address target, Context* to, Address source, Context* from, size_t bytes, Stream* s);

EXPORT int hipGetDevice(int* device) {
  BEGIN(hipGetDevice, false);
  *device = current()->device;
  return 0;
}
EXPORT int hipSetDevice(int device) {
  BEGIN(hipSetDevice, false);
  if (device < 0 || fake_gpu_bytes(device) == 0) return 101;
  current();
  stack.back() = context_of(device);
  return 0;
}
EXPORT int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  BEGIN(hipDeviceEnablePeerAccess);
  if (flags != 0 || peer == current()->device) return kInvalidValue;
  return current()->peers.insert(context_of(peer)).second ? 0 : kPeerEnabled;
}
EXPORT int hipMemcpyPeerAsync(Address target, int to, Address source, int from, size_t bytes, Stream* s) {
  BEGIN(hipMemcpyPeerAsync);
  return fake_copy_between(target, context_of(to), source, context_of(from), bytes, s);
}

// The struct as it is from ROCm 6 on.
EXPORT int hipGetDevicePropertiesR0600(char* properties, int device) {
  BEGIN(hipGetDevicePropertiesR0600, false);
  strcpy(properties + 1160, fake_gpu_architecture(device));
  return 0;
}

EXPORT const char* hipGetErrorName(int code) {
  static const std::map<int, const char*> names = {{0, "hipSuccess"},
                                                   {1, "hipErrorInvalidValue"},
                                                   {2, "hipErrorOutOfMemory"},
                                                   {209, "hipErrorNoBinaryForGpu"},
                                                   {400, "hipErrorInvalidHandle"},
                                                   {700, "hipErrorIllegalAddress"},
                                                   {719, "hipErrorLaunchFailure"}};
  const auto at = names.find(code);
  return at == names.end() ? "hipErrorUnknown" : at->second;
}
EXPORT const char* hipGetErrorString(int code) { return code == kLaunchFailed ? "unspecified launch failure" : "an error"; }
