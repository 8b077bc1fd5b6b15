// The rocm backend: AMD's devices, through HIP's run time and hipRTC, both opened at run time. It never ran on a GPU. It is tested with a fake
// driver (tests/fakes), and by compiling its kernels with hipRTC, which needs no GPU.
#include "backends/gpu/backend.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"
#include "backends/rocm/device.h"
#include "backends/rocm/driver.h"

namespace naru::backends {
namespace {

using namespace rocm;

// What PyTorch calls AMD's devices.
constexpr DeviceType kAsPyTorch = DeviceType::Cuda;

class RocmDevices final : public gpu::GpuDevices {
 public:
  explicit RocmDevices(const runtime::GpuProbe& probe) : GpuDevices(probe.gpus), compiler_(probe.version), libraries_(probe.version) {}
  const gpu::Compiler& compiler() const noexcept override { return compiler_; }
  std::string libraries() const override { return compiler_.name() + ", " + libraries_.text(); }
  runtime::Communicators* communicators() noexcept override { return &communicators_; }

 private:
  gpu::Driver open_driver() const override { return rocm::open_driver(); }
  std::unique_ptr<gpu::GpuDevice> open(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver) const override {
    return std::make_unique<RocmDevice>(device, gpu, driver, compiler_, libraries_);
  }
  const Compiler compiler_;
  const VendorLibraries libraries_;
  gpu::NcclCommunicators communicators_{*this, libraries_.collectives};
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
                    .library_products = true}) {}

 private:
  std::unique_ptr<gpu::GpuDevices> make_devices(const runtime::GpuProbe& probe) const override {
    return std::make_unique<RocmDevices>(probe);
  }
  std::string untested(const runtime::Gpu&) const override { return "never run by naru's authors on a GPU of AMD's"; }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_rocm() { return std::make_unique<RocmBackend>(); }

}  // namespace naru::backends
