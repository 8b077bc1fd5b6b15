// A CUDA device: a GPU with NVIDIA's libraries.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/api.h"
#include "backends/cuda/attention.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/convolutions.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/factors.h"
#include "backends/cuda/transforms.h"
#include "backends/gpu/device.h"
#include "backends/gpu/matmul.h"
#include "backends/gpu/nccl.h"

namespace naru::backends::cuda {

struct Nccl : gpu::NcclFunctions {
  static constexpr Product kProduct = Product::Nccl;
};

// NVIDIA's libraries besides the compiler.
struct VendorLibraries {
  explicit VendorLibraries(int driver_version)
      : products(driver_version),
        transforms(driver_version),
        factors(driver_version),
        convolutions(driver_version),
        collectives(driver_version) {}
  const gpu::VendorLibrary<CublasLt> products;
  const gpu::VendorLibrary<Cufft> transforms;
  const gpu::VendorLibrary<Cusolver> factors;
  const gpu::VendorLibrary<Cudnn> convolutions;  // and attention
  const gpu::VendorLibrary<Nccl> collectives;
  // "cuBLASLt 13.1.0, cuFFT 12.0.0", or why one is unavailable.
  std::string text() const {
    return products.text() + ", " + transforms.text() + ", " + factors.text() + ", " + convolutions.text() + ", " + collectives.text();
  }
};

// Thread-safe.
class CudaDevice final : public gpu::GpuDevice {
 public:
  CudaDevice(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver, const Compiler& compiler, const VendorLibraries& libraries);

  bool takes(const ir::Instruction& instruction) override;
  bool run_by_library(const ir::Instruction& instruction, gpu::StreamLauncher& launcher) override;
  gpu::Products& products() noexcept { return products_; }
  Transforms& transforms() noexcept { return transforms_; }
  Factors& factors() noexcept { return factors_; }
  Convolutions& convolutions() noexcept { return convolutions_; }
  Attentions& attentions() noexcept { return attentions_; }

 private:
  gpu::Products products_;
  Transforms transforms_;
  Factors factors_;
  Convolutions convolutions_;
  Attentions attentions_;
};

class CudaDevices final : public gpu::GpuDevices {
 public:
  // driver_version: 12080 is CUDA 12.8.
  CudaDevices(std::vector<runtime::Gpu> gpus, int driver_version)
      : GpuDevices(std::move(gpus)), compiler_(driver_version), libraries_(driver_version) {}
  const gpu::Compiler& compiler() const noexcept override { return compiler_; }
  std::string libraries() const override { return compiler_.name() + ", " + libraries_.text(); }
  runtime::Communicators* communicators() noexcept override { return &communicators_; }

 private:
  gpu::Driver open_driver() const override { return cuda::open_driver(); }
  std::unique_ptr<gpu::GpuDevice> open(Device device, const runtime::Gpu& gpu, const gpu::Driver& driver) const override {
    return std::make_unique<CudaDevice>(device, gpu, driver, compiler_, libraries_);
  }
  const Compiler compiler_;
  const VendorLibraries libraries_;
  gpu::NcclCommunicators communicators_{*this, libraries_.collectives};
};

}  // namespace naru::backends::cuda
