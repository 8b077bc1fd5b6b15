// Convolutions by cuDNN where the library supports them; naru's own kernels compute the others.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/dnn_plan.h"
#include "backends/gpu/convolutions.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

// Unique ids of the graph's tensors.
enum class DnnConvolved : int64_t { X = 1, W, Y };
void add_convolution(DnnGraph& graph, const gpu::DenseConvolution& convolution);
// True if an engine gives the same bits each time, at the precision that the convolution's dtype and settings require.
bool is_exact(const gpu::DenseConvolution& convolution, DnnNotes notes) noexcept;

// The convolutions of one device: a handle, and the library's engines per shape.
class Convolutions final : public gpu::ConvolutionLibrary {
 public:
  // Limit of cached shapes; beyond it, naru's own kernels compute new ones.
  static constexpr size_t kMostPlans = 4096;

  Convolutions(const gpu::GpuDevice& device, const gpu::VendorLibrary<Cudnn>& library) : ConvolutionLibrary(device), library_(library) {}
  ~Convolutions() override;

  std::optional<Way> way(const gpu::DenseConvolution& convolution, size_t from) override;
  bool start(const gpu::DenseConvolution& convolution, size_t way, void* x, void* w, void* y, void* workspace, CUstream stream) override;
  const char* label() const noexcept override { return label_of(Product::Cudnn); }

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const gpu::DenseConvolution& convolution);
  bool open();
  void check(cudnnStatus_t status, const char* function, const gpu::DenseConvolution& convolution) const;

  const gpu::VendorLibrary<Cudnn>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Cudnn* functions_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::map<gpu::DenseConvolution, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
