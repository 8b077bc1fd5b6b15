#include "backends/rocm/device.h"

#include <algorithm>

#include "backends/gpu/launcher.h"

namespace naru::backends::rocm {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;

// The dialect's kernels use neither shuffles nor ballots, so they are the same for wavefronts of 32 and of 64 lanes.
render::c::Target target_of(const runtime::Gpu& gpu) {
  render::c::Target t;
  t.dialect = &render::c::hip();
  t.parameters = 4096;
  t.local = std::max(gpu.limits.shared_of_block, 32 << 10);
  return t;
}

}  // namespace

RocmDevice::RocmDevice(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver, const gpu::Compiler& compiler,
                       const VendorLibraries& libraries)
    : GpuDevice(device, gpu, driver, compiler, target_of(gpu)),
      products_(*this, libraries.products, kWorkspace, false),  // gfx942 alone has TF32
      convolutions_(*this, libraries.convolutions) {}

bool RocmDevice::run_by_library(const ir::Instruction& instruction, gpu::StreamLauncher& launcher) {
  if (const auto* m = std::get_if<ir::MatMul>(&instruction)) return gpu::multiply_by_library(*m, products_, launcher);
  if (const auto* c = std::get_if<ir::Convolution>(&instruction)) return gpu::convolve_by_library(*c, convolutions_, launcher);
  return false;
}

}  // namespace naru::backends::rocm
