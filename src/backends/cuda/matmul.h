// Matrix products by cuBLASLt, where there is one that takes them; the others are left to naru's own kernels.
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

using MatMulLibrary = VendorLibrary<CublasLt>;

// Whether rows or columns of the matrix are neighbours in memory, as the library wants it.
bool unit_stride(const ir::MatMul::Matrix& matrix, int64_t rows, int64_t cols) noexcept;
// The product's like for cuBLASLt; nothing where it is not for the library: kinds and layouts that it does not take, sums over nothing, and what must be
// computed in one order. tf32: the device has units for it.
std::optional<LtMatMul> for_library(const ir::MatMul& product, bool tf32) noexcept;

// The products of one device: a handle, and the algorithms that the library has chosen. Thread-safe.
class Products {
 public:
  // Algorithms kept; beyond that all are asked for anew.
  static constexpr size_t kMostPlans = 2048;
  // Memory of the device that the product has for itself until its stream is done with it; null where there is none left.
  using Workspace = std::function<void*(size_t bytes)>;

  Products(const CudaDevice& device, const MatMulLibrary& library) : device_(device), library_(library) {}
  ~Products();
  Products(const Products&) = delete;

  // Whether there is a library at all, which is opened here.
  bool available();
  // Puts the product on the stream (null: only plans it and takes memory), whose context is current. False where naru's own kernels are to do it; nothing has happened then.
  // Throws RuntimeError where the library fails, OutOfMemoryError where it has no memory.
  bool start(const ir::MatMul& product, CUstream stream, const Workspace& workspace);

 private:
  struct Plan {
    std::unique_ptr<LtDescriptors> descriptors;  // null: the library does not do it
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
