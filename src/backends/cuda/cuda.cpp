// The cuda backend: NVIDIA's devices, through their driver and NVRTC, both opened at run time. Tested with a fake driver
// (tests/fakes/cuda.cpp), by compiling its kernels with NVRTC, and on the devices of kTested (docs/gpu-results.md).
#include <algorithm>
#include <utility>

#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"
#include "backends/gpu/backend.h"

namespace naru::backends {
namespace {

using namespace cuda;

// Compute capabilities of GPUs on which all operators have been tested: H100 (docs/gpu-results.md).
constexpr std::pair<int, int> kTested[] = {{9, 0}};

class CudaBackend final : public gpu::GpuBackend {
 public:
  CudaBackend()
      : GpuBackend({.name = "cuda",
                    .driver = kDriver,
                    .kinds = {DeviceType::Cuda},
                    .module_version = "/sys/module/nvidia/version",
                    .shared_kind = 2,
                    .library_products = true}) {}

 private:
  std::unique_ptr<gpu::GpuDevices> make_devices(const runtime::GpuProbe& probe) const override {
    return std::make_unique<CudaDevices>(probe.gpus, probe.version);
  }
  std::string untested(const runtime::Gpu& g) const override {
    const bool tested = std::find(std::begin(kTested), std::end(kTested), std::pair{g.major, g.minor}) != std::end(kTested);
    return tested ? "" : "never run by naru's authors on a GPU of its compute capability";
  }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_cuda() { return std::make_unique<CudaBackend>(); }

}  // namespace naru::backends
