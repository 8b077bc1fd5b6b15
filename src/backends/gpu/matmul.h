// Matrix products by cuBLASLt or hipBLASLt where the library supports them; naru's own kernels compute the others.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/gpu/blaslt.h"
#include "backends/gpu/device.h"
#include "ir/instruction.h"

namespace naru::backends::gpu {

// True if the matrix has unit stride along rows or columns, as the library requires.
bool unit_stride(const ir::MatMul::Matrix& matrix, int64_t rows, int64_t cols) noexcept;
// Describes the product for the library. nullopt if the library is not used: unsupported types or layouts, empty sums (k = 0), or a required
// canonical order. tf32: the device has TF32 units.
std::optional<LtMatMul> for_library(const ir::MatMul& product, bool tf32) noexcept;

// Prints a warning, once per `told`: memory ran short for the library, so the program continues more slowly.
void warn_out_of_workspace(std::atomic<bool>& told, const Device& device, const char* library, const char* what);

// The products of one device: a handle, and the algorithms that the library has chosen. Thread-safe.
class Products {
 public:
  // Limit of cached algorithms; beyond it, every product queries the library again.
  static constexpr size_t kMostPlans = 2048;
  // Allocates device memory that belongs to the product until its stream is done with it; returns null if none is left.
  using Workspace = std::function<void*(size_t bytes)>;

  // most_workspace: the bytes that an algorithm may work in. tf32: the device has TF32 units.
  template <VendorFunctions F>
  Products(const GpuDevice& device, const VendorLibrary<F>& library, size_t most_workspace, bool tf32)
      : device_(device),
        most_workspace_(most_workspace),
        tf32_(tf32),
        label_(label_of(F::kProduct)),
        get_([&library] { return static_cast<const LtFunctions*>(library.get()); }),
        refused_([&library](int status) { library.refused(status); }) {}
  ~Products();
  Products(const Products&) = delete;

  // True if there is a library; opens it.
  bool available();
  // Enqueues the product on the stream (null: only plans and allocates); the device must be current. Returns false, and does nothing, if
  // naru's own kernels must compute it.
  // Throws RuntimeError if the library fails, OutOfMemoryError if it has no memory.
  bool start(const ir::MatMul& product, StreamHandle stream, const Workspace& workspace);
  // Warns once that there was no memory to work in.
  void warn_out_of_workspace() { gpu::warn_out_of_workspace(told_, device_.device(), label_, "matrix products"); }

 private:
  struct Plan {
    std::unique_ptr<LtDescriptors> descriptors;  // null: the library does not support it
    size_t workspace = 0;
  };
  std::shared_ptr<Plan> plan_of(const LtMatMul& product, const void* bias);
  bool open();

  const GpuDevice& device_;
  const size_t most_workspace_;
  const bool tf32_;
  const char* const label_;
  const std::function<const LtFunctions*()> get_;
  const std::function<void(int)> refused_;
  std::atomic<bool> told_{false};
  std::mutex mutex_;
  bool opened_ = false;
  const LtFunctions* lt_ = nullptr;
  LtHandle handle_ = nullptr;
  std::map<LtMatMul, std::shared_ptr<Plan>> plans_;
};

// Puts the product on the launcher's stream by the library, with kernels around the call where it lacks something. Returns false, and does
// nothing, if naru's own kernels must do the work.
bool multiply_by_library(const ir::MatMul& product, Products& products, StreamLauncher& launcher);

}  // namespace naru::backends::gpu
