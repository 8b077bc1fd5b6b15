// Convolutions by cuDNN, where there is one that takes them; the others are left to naru's own kernels.
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

// A convolution as cuDNN is told of it: x, w and y lie densely, all of them with channels last or none.
struct DnnConvolution {
  ir::Convolution::Use use = ir::Convolution::Use::Forward;
  int type = 0;
  bool tf32 = false, channels_last = false;
  int dims = 4;
  std::array<int64_t, 5> x{}, w{}, y{};                    // sizes, `dims` of them; w has the channels of one group
  std::array<int64_t, 3> padding{}, stride{}, dilation{};  // dims - 2 of them
  auto operator<=>(const DnnConvolution&) const = default;
};
// Nothing where it is not for the library: what must be computed in one order, types and sizes that it does not take, padding that is not the same on
// both sides.
std::optional<DnnConvolution> for_cudnn(const ir::Convolution& q, bool channels_last) noexcept;
using Sizes5 = std::array<int64_t, 5>;
// The strides of a dense array: of channels that are last, or of row-major order. And whether an array lies so.
Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept;
bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept;

// By these the operation's tensors are told apart.
enum class DnnConvolved : int64_t { X = 1, W, Y };
void add_convolution(DnnGraph& graph, const DnnConvolution& convolution);
// Whether an engine gives the same bits each time, and results as exact as the convolution's type and precision want.
bool is_exact(const DnnConvolution& convolution, DnnNotes notes) noexcept;

// The convolutions of one device: a handle, and what the library has to say of each shape. Thread-safe. The device's context must be current.
class Convolutions {
 public:
  // Shapes kept; beyond that, new ones are left to naru's own kernels.
  static constexpr size_t kMostPlans = 4096;
  struct Way {
    size_t number = 0;
    size_t workspace = 0;  // bytes
  };

  Convolutions(const CudaDevice& device, const VendorLibrary<Cudnn>& library) : device_(device), library_(library) {}
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;

  // The library's ways to do it, from number `from` on, those first that it expects to be quickest; none where there is no library, or no more of them.
  std::optional<Way> way(const DnnConvolution& convolution, size_t from);
  // Puts it on the stream. False where the library does not do it after all; nothing has happened then. Throws RuntimeError where it fails,
  // OutOfMemoryError where it has no memory.
  bool start(const DnnConvolution& convolution, size_t way, void* x, void* w, void* y, void* workspace, CUstream stream);

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const DnnConvolution& convolution);
  bool open();
  void check(cudnnStatus_t status, const char* function, const DnnConvolution& convolution) const;

  const CudaDevice& device_;
  const VendorLibrary<Cudnn>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Cudnn* functions_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::map<DnnConvolution, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
