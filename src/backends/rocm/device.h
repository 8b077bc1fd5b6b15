// A ROCm device: a GPU with AMD's libraries.
#pragma once

#include <string>

#include "backends/gpu/device.h"
#include "backends/gpu/matmul.h"
#include "backends/gpu/nccl.h"
#include "backends/rocm/convolutions.h"
#include "backends/rocm/hipblaslt.h"
#include "backends/rocm/libraries.h"

namespace naru::backends::rocm {

// AMD's libraries besides the compiler.
struct VendorLibraries {
  explicit VendorLibraries(int driver_version) : products(driver_version), convolutions(driver_version), collectives(driver_version) {}
  const gpu::VendorLibrary<HipblasLt> products;
  const gpu::VendorLibrary<Miopen> convolutions;
  const gpu::VendorLibrary<Rccl> collectives;
  // "hipBLASLt, MIOpen 3.4.0", or why one is unavailable.
  std::string text() const { return products.text() + ", " + convolutions.text() + ", " + collectives.text(); }
};

// Thread-safe.
class RocmDevice final : public gpu::GpuDevice {
 public:
  RocmDevice(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver, const gpu::Compiler& compiler,
             const VendorLibraries& libraries);
  bool run_by_library(const ir::Instruction& instruction, gpu::StreamLauncher& launcher) override;

 private:
  gpu::Products products_;
  Convolutions convolutions_;
};

}  // namespace naru::backends::rocm
