// Convolutions by cuDNN, where there is one that takes them; the others are left to naru's own kernels.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/cudnn.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

// A convolution as cuDNN is told of it: x, w and y lie densely, all of them with channels last or none.
struct DnnConvolution {
  ir::Convolution::Use use = ir::Convolution::Use::Forward;
  int type = 0, compute = 0, math = 0;
  bool channels_last = false;
  int dims = 4, groups = 1;
  std::array<int, 5> x{}, w{}, y{};                    // sizes, `dims` of them
  std::array<int, 3> padding{}, stride{}, dilation{};  // dims - 2 of them
  auto operator<=>(const DnnConvolution&) const = default;
};
// Nothing where it is not for the library: what must be computed in one order, types and sizes that it does not take, padding that is not the same on
// both sides.
std::optional<DnnConvolution> for_cudnn(const ir::Convolution& q, bool channels_last) noexcept;
using Sizes5 = std::array<int64_t, 5>;
// The strides of a dense array: of channels that are last, or of row-major order. And whether an array lies so.
Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept;
bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept;

// The library's descriptors of a convolution. Host memory only: they need no device.
class DnnDescriptors {
 public:
  // check: throws for a status that is not success.
  using Check = std::function<void(cudnnStatus_t status, const char* function)>;
  DnnDescriptors(const Cudnn& functions, const DnnConvolution& convolution, const Check& check);

  cudnnTensorDescriptor_t x() const noexcept { return x_.get(); }
  cudnnTensorDescriptor_t y() const noexcept { return y_.get(); }
  cudnnFilterDescriptor_t w() const noexcept { return w_.get(); }
  cudnnConvolutionDescriptor_t convolution() const noexcept { return convolution_.get(); }

 private:
  template <class T>
  using Owned = std::unique_ptr<T, cudnnStatus_t (*)(T*)>;
  Owned<DnnTensorTag> x_, y_;
  Owned<DnnFilterTag> w_;
  Owned<DnnConvolutionTag> convolution_;
};

// The convolutions of one device: a handle, and what the library has to say of each shape. Thread-safe. The device's context must be current.
class Convolutions {
 public:
  // Shapes kept; beyond that all are asked for anew.
  static constexpr size_t kMostPlans = 1024;
  struct Algorithm {
    int number = 0, math = 0;
    size_t workspace = 0;  // bytes
  };

  Convolutions(const CudaDevice& device, const VendorLibrary<Cudnn>& library) : device_(device), library_(library) {}
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;

  // The library's algorithms for it that give the same bits each time, those first that it expects to be quickest; none where there is no library.
  std::vector<Algorithm> algorithms(const DnnConvolution& convolution);
  // Puts it on the stream. False where the library does not do it after all; nothing has happened then. Throws RuntimeError where it fails,
  // OutOfMemoryError where it has no memory.
  bool start(const DnnConvolution& convolution, const Algorithm& algorithm, void* x, void* w, void* y, void* workspace, CUstream stream);

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
