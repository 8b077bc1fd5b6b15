#include "backends/cuda/device.h"

#include "backends/cuda/launcher.h"
#include "naru/device/precision.h"

namespace naru::backends::cuda {
namespace {

// NVIDIA's recommendation for cuBLASLt: 32 MiB from Hopper on, whose algorithms split k more often; 8 MiB before.
constexpr size_t kWorkspace = size_t{8} << 20, kWorkspaceOfHopper = size_t{32} << 20;

render::c::Target target_of_cuda() {
  render::c::Target t;
  t.dialect = &render::c::cuda();
  t.parameters = 4096;
  t.local = 48 << 10;  // without opt-in
  return t;
}

}  // namespace

CudaDevice::CudaDevice(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver, const Compiler& compiler,
                       const VendorLibraries& libraries)
    : GpuDevice(device, gpu, driver, compiler, target_of_cuda()),
      products_(*this, libraries.products, gpu.major >= 9 ? kWorkspaceOfHopper : kWorkspace, gpu.major >= 8),
      transforms_(*this, libraries.transforms),
      factors_(*this, libraries.factors),
      convolutions_(*this, libraries.convolutions),
      attentions_(*this, libraries.convolutions) {}

bool CudaDevice::takes(const ir::Instruction& instruction) {
  if (deterministic_algorithms()) return false;  // use kernels, so that all devices give the cpu's bits
  check_usable();
  const Current scope(*this);
  if (const auto* f = std::get_if<ir::Fft>(&instruction)) return transforms_.takes(*f);
  if (const auto* l = std::get_if<ir::Lapack>(&instruction)) return factors_.takes(*l);
  if (const auto* a = std::get_if<ir::Attention>(&instruction)) return attentions_.takes(*a);
  return false;
}

bool LibraryLauncher::run(const ir::Instruction& instruction) {
  if (const auto* m = std::get_if<ir::MatMul>(&instruction)) return gpu::multiply_by_library(*m, device_.products(), launcher_);
  if (const auto* c = std::get_if<ir::Convolution>(&instruction)) return gpu::convolve_by_library(*c, device_.convolutions(), launcher_);
  if (const auto* f = std::get_if<ir::Fft>(&instruction)) return transform(*f), true;
  if (const auto* l = std::get_if<ir::Lapack>(&instruction)) return factor(*l), true;
  if (const auto* a = std::get_if<ir::Attention>(&instruction)) return attend(*a), true;
  return false;
}

bool CudaDevice::run_by_library(const ir::Instruction& instruction, gpu::StreamLauncher& launcher) {
  return LibraryLauncher(*this, launcher).run(instruction);
}

}  // namespace naru::backends::cuda
