// The cuda backend. So far it finds NVIDIA's devices and says what keeps them from being used; it has no kernels yet.
#include "backends/cuda/driver.h"
#include "runtime/library.h"
#include "runtime/unusable_backend.h"

namespace naru::backends {
namespace {

using namespace runtime;

Availability ask() {
  const GpuProbe found = probe_gpus(cuda::kDriver);
  if (!found.state.available) return found.state;
  if (const Library compiler = Library::open("NARU_NVRTC_LIBRARY", cuda::kCompilers); !compiler)
    return unavailable(DriverState::NoLibrary, {{"detail", compiler.trouble()},
                                                {"driver", "NVRTC, CUDA's run-time compiler"},
                                                {"install", "pip install nvidia-cuda-nvrtc, or the CUDA toolkit"}});
  return unavailable(DriverState::NoKernels, {{"driver", "the NVIDIA driver"},
                                              {"devices", fmt::format("{}; {}", found.driver, list_of(found.gpus))},
                                              {"kind", "cuda"}});
}

}  // namespace

std::unique_ptr<Backend> make_cuda() {
  return std::make_unique<UnusableBackend>("cuda", DeviceType::Cuda, ask);
}

}  // namespace naru::backends
