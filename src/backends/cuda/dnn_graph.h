// cuDNN operation graphs: inputs, outputs, and virtual tensors, which exist only within the kernel that the library makes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "backends/cuda/cudnn.h"

namespace naru::backends::cuda {

using Sizes4 = std::array<int64_t, 4>;
// Row-major strides.
Sizes4 dense_strides(const Sizes4& sizes) noexcept;

// Must throw if status is not success.
using DnnCheck = std::function<void(int status, const char* function)>;

// A backend descriptor of the library, before and after it is finalised.
class DnnDescriptor {
 public:
  DnnDescriptor(const Cudnn& functions, int kind, const DnnCheck& check);
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& other) noexcept;
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept;

  cudnnBackendDescriptor_t get() const noexcept { return descriptor_; }
  void set(int attribute, int type, int64_t count, const void* elements, const DnnCheck& check);
  void set(int attribute, const DnnDescriptor& other, const DnnCheck& check);
  void finish(const DnnCheck& check);

 private:
  const Cudnn* functions_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

class DnnGraph {
 public:
  // Refers to a tensor of the graph; valid as long as the graph.
  struct Tensor {
    size_t index = 0;
    Sizes4 sizes{};  // of four dimensions
  };

  // inner: first id for tensors that are created without one.
  DnnGraph(const Cudnn& functions, DnnCheck check, int64_t inner) : functions_(functions), check_(std::move(check)), next_(inner) {}

  // Adds a tensor in device memory; a float32 scalar of the host, passed at each run; a virtual tensor with row-major or given strides.
  Tensor in_memory(int64_t number, int type, std::span<const int64_t> sizes, std::span<const int64_t> strides);
  Tensor of_host(int64_t number);
  Tensor inner(int type, const Sizes4& sizes);
  Tensor inner(int type, const Sizes4& sizes, const Sizes4& strides);

  // Computes in float32 unless `computed` is given.
  void matmul(Tensor a, Tensor b, Tensor into);
  // mode(x), mode(x, b) or mode(x, b, t). axis: for GEN_INDEX.
  void pointwise(int mode, std::initializer_list<Tensor> operands, Tensor into, int computed = CUDNN_DATA_FLOAT, int64_t axis = -1);
  void reduction(int op, Tensor x, Tensor into);
  void reshape(Tensor x, Tensor into);
  // A convolution y = w * x or one of its gradients: CUDNN_BACKEND_OPERATION_CONVOLUTION_*_DESCRIPTOR. computed: CUDNN_DATA_FLOAT or
  // CUDNN_DATA_DOUBLE. Padding, stride and dilation are per spatial dimension.
  void convolution(int use, std::span<const int64_t> padding, std::span<const int64_t> stride, std::span<const int64_t> dilation,
                   int computed, Tensor x, Tensor w, Tensor y);

  // Finalises the graph of all operations so far. handle: of its device, or null.
  DnnDescriptor finish(cudnnHandle_t handle);

 private:
  Tensor tensor(int64_t number, int type, std::span<const int64_t> sizes, std::span<const int64_t> strides, bool is_inner, bool by_value);
  DnnDescriptor make(int kind) { return DnnDescriptor(functions_, kind, check_); }
  void set_tensor(DnnDescriptor& operation, int attribute, Tensor t) { operation.set(attribute, tensors_[t.index], check_); }
  void add(DnnDescriptor operation, DnnDescriptor about);

  const Cudnn& functions_;
  const DnnCheck check_;
  int64_t next_;
  std::vector<DnnDescriptor> tensors_, about_, operations_;
};

}  // namespace naru::backends::cuda
