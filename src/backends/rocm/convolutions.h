// Convolutions by MIOpen where it supports them; naru's own kernels compute the others.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/gpu/convolutions.h"
#include "backends/rocm/miopen.h"

namespace naru::backends::rocm {

// The convolutions of one device: a handle, and the library's solutions per shape.
class Convolutions final : public gpu::ConvolutionLibrary {
 public:
  // Limit of cached shapes; beyond it, every convolution queries the library again.
  static constexpr size_t kMostPlans = 4096;

  Convolutions(const gpu::GpuDevice& device, const gpu::VendorLibrary<Miopen>& library) : ConvolutionLibrary(device), library_(library) {}
  ~Convolutions() override;

  std::optional<Way> way(const gpu::DenseConvolution& convolution, size_t from) override;
  bool start(const gpu::DenseConvolution& convolution, size_t way, void* x, void* w, void* y, void* workspace,
             gpu::StreamHandle stream) override;
  const char* label() const noexcept override { return label_of(Product::Miopen); }

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const gpu::DenseConvolution& convolution);
  bool open();
  // Returns false for a refusal. Throws for a failure.
  bool accepted(miopenStatus_t status, const char* function, const gpu::DenseConvolution& convolution) const;

  const gpu::VendorLibrary<Miopen>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Miopen* functions_ = nullptr;
  miopenHandle_t handle_ = nullptr;
  std::map<gpu::DenseConvolution, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::rocm
