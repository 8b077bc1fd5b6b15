// Matrix products by cuBLASLt where the library supports them; naru's own kernels compute the others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/cuda/cublaslt.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

using MatMulLibrary = gpu::VendorLibrary<CublasLt>;

// True if the matrix has unit stride along rows or columns, as the library requires.
bool unit_stride(const ir::MatMul::Matrix& matrix, int64_t rows, int64_t cols) noexcept;
// Describes the product for cuBLASLt. nullopt if the library is not used: unsupported types or layouts, empty sums (k = 0), or a required
// canonical order. tf32: the device has TF32 units.
std::optional<LtMatMul> for_library(const ir::MatMul& product, bool tf32) noexcept;

// The products of one device: a handle, and the algorithms that the library has chosen. Thread-safe.
class Products {
 public:
  // Limit of cached algorithms; beyond it, every product queries the library again.
  static constexpr size_t kMostPlans = 2048;
  // Allocates device memory that belongs to the product until its stream is done with it; returns null if none is left.
  using Workspace = std::function<void*(size_t bytes)>;

  Products(const CudaDevice& device, const MatMulLibrary& library) : device_(device), library_(library) {}
  ~Products();
  Products(const Products&) = delete;

  // True if there is a library; opens it.
  bool available();
  // Enqueues the product on the stream (null: only plans and allocates); the stream's context must be current. Returns false, and does
  // nothing, if naru's own kernels must compute it.
  // Throws RuntimeError if the library fails, OutOfMemoryError if it has no memory.
  bool start(const ir::MatMul& product, CUstream stream, const Workspace& workspace);

 private:
  struct Plan {
    std::unique_ptr<LtDescriptors> descriptors;  // null: the library does not support it
    size_t workspace = 0;
  };
  std::shared_ptr<Plan> plan_of(const LtMatMul& product, const void* bias);
  bool open();

  const CudaDevice& device_;
  const MatMulLibrary& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const CublasLt* lt_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  std::map<LtMatMul, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
