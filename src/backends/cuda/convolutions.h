// Convolutions by cuDNN where the library supports them; naru's own kernels compute the others.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/dnn_plan.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

// A convolution as it is described to cuDNN: x, w and y are dense, and either all or none of them are channels-last.
struct DnnConvolution {
  ir::Convolution::Use use = ir::Convolution::Use::Forward;
  int type = 0;
  bool tf32 = false, channels_last = false;
  int dims = 4;
  std::array<int64_t, 5> x{}, w{}, y{};                    // sizes, the first `dims`; w has the channels of one group
  std::array<int64_t, 3> padding{}, stride{}, dilation{};  // the first dims - 2
  auto operator<=>(const DnnConvolution&) const = default;
};
// nullopt if the library is not used: a canonical order is required, types or sizes are not supported, or padding differs between the two
// sides.
std::optional<DnnConvolution> for_cudnn(const ir::Convolution& q, bool channels_last) noexcept;
using Sizes5 = std::array<int64_t, 5>;
// Strides of a dense array, channels-last or row-major; and whether an array has them.
Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept;
bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept;

// Unique ids of the graph's tensors.
enum class DnnConvolved : int64_t { X = 1, W, Y };
void add_convolution(DnnGraph& graph, const DnnConvolution& convolution);
// True if an engine gives the same bits each time, at the precision that the convolution's dtype and settings require.
bool is_exact(const DnnConvolution& convolution, DnnNotes notes) noexcept;

// The convolutions of one device: a handle, and the library's proposals per shape. Thread-safe. The device's context must be current.
class Convolutions {
 public:
  // Limit of cached shapes; beyond it, naru's own kernels compute new ones.
  static constexpr size_t kMostPlans = 4096;
  struct Way {
    size_t number = 0;
    size_t workspace = 0;  // bytes
  };

  Convolutions(const CudaDevice& device, const gpu::VendorLibrary<Cudnn>& library) : device_(device), library_(library) {}
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;

  // The library's engines for it from number `from` on, in the order of its heuristic (expected fastest first). nullopt if there is no
  // library, or no further engine.
  std::optional<Way> way(const DnnConvolution& convolution, size_t from);
  // Enqueues it on the stream. Returns false, and does nothing, if the library rejects it after all. Throws RuntimeError if it fails,
  // OutOfMemoryError if it has no memory.
  bool start(const DnnConvolution& convolution, size_t way, void* x, void* w, void* y, void* workspace, CUstream stream);

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const DnnConvolution& convolution);
  bool open();
  void check(cudnnStatus_t status, const char* function, const DnnConvolution& convolution) const;

  const CudaDevice& device_;
  const gpu::VendorLibrary<Cudnn>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Cudnn* functions_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::map<DnnConvolution, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
