// The rocm backend: AMD's devices, through HIP's run time and hipRTC, both opened at run time. It never ran on a GPU. It is tested with a fake
// driver (tests/fakes), and by compiling its kernels with hipRTC, which needs no GPU.
#include <algorithm>

#include "backends/gpu/backend.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"
#include "backends/rocm/driver.h"
#include "backends/rocm/libraries.h"

namespace naru::backends {
namespace {

using namespace rocm;

// What PyTorch calls AMD's devices.
constexpr DeviceType kAsPyTorch = DeviceType::Cuda;

// The dialect's kernels use neither shuffles nor ballots, so they are the same for wavefronts of 32 and of 64 lanes.
render::c::Target target_of(const runtime::Gpu& gpu) {
  render::c::Target t;
  t.dialect = &render::c::hip();
  t.parameters = 4096;
  t.local = std::max(gpu.limits.shared_of_block, 32 << 10);
  return t;
}

class RocmDevices final : public gpu::GpuDevices {
 public:
  explicit RocmDevices(const runtime::GpuProbe& probe) : GpuDevices(probe.gpus), compiler_(probe.version), collectives_(probe.version) {}
  const gpu::Compiler& compiler() const noexcept override { return compiler_; }
  std::string libraries() const override { return compiler_.name() + ", " + collectives_.text(); }
  runtime::Communicators* communicators() noexcept override { return &communicators_; }

 private:
  gpu::Driver open_driver() const override { return rocm::open_driver(); }
  std::unique_ptr<gpu::GpuDevice> open(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver) const override {
    return std::make_unique<gpu::GpuDevice>(device, gpu, driver, compiler_, target_of(gpu));
  }
  const Compiler compiler_;
  const gpu::VendorLibrary<Rccl> collectives_;
  gpu::NcclCommunicators communicators_{*this, collectives_};
};

class RocmBackend final : public gpu::GpuBackend {
 public:
  // Its devices are named cuda, too, as PyTorch names them, on machines without NVIDIA's: the cuda backend is asked first.
  RocmBackend()
      : GpuBackend({.name = "rocm",
                    .driver = kDriver,
                    .kinds = {DeviceType::Rocm, kAsPyTorch},
                    .module_version = "/sys/module/amdgpu/version",
                    .shared_kind = 10,
                    .library_products = false}) {}

 private:
  std::unique_ptr<gpu::GpuDevices> make_devices(const runtime::GpuProbe& probe) const override {
    return std::make_unique<RocmDevices>(probe);
  }
  std::string untested(const runtime::Gpu&) const override {
    return "own kernels for products and convolutions; never run by naru's authors on a GPU of AMD's";
  }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_rocm() { return std::make_unique<RocmBackend>(); }

}  // namespace naru::backends
