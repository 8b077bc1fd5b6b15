// Graphs of cuDNN's operations: what goes in, what comes out, and between them tensors that are nowhere but within the kernel that the library makes.
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
// Row-major.
Sizes4 dense_strides(const Sizes4& sizes) noexcept;

// check: throws for a status that is not success.
using DnnCheck = std::function<void(int status, const char* function)>;

// A descriptor of the library's, until its attributes are all there and after.
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
  // Of the graph's own; they live as long as it.
  struct Tensor {
    size_t index = 0;
    Sizes4 sizes{};  // of four dimensions
  };

  // inner: the number from which those are counted that have no other.
  DnnGraph(const Cudnn& functions, DnnCheck check, int64_t inner) : functions_(functions), check_(std::move(check)), next_(inner) {}

  // In memory; one float32 of the host's, handed over when it runs; within the kernel, with row-major strides or others.
  Tensor in_memory(int64_t number, int type, std::span<const int64_t> sizes, std::span<const int64_t> strides);
  Tensor of_host(int64_t number);
  Tensor inner(int type, const Sizes4& sizes);
  Tensor inner(int type, const Sizes4& sizes, const Sizes4& strides);

  // All in float32, unless `computed` says otherwise.
  void matmul(Tensor a, Tensor b, Tensor into);
  // mode(x), mode(x, b) or mode(x, b, t). axis: of GEN_INDEX.
  void pointwise(int mode, std::initializer_list<Tensor> operands, Tensor into, int computed = CUDNN_DATA_FLOAT, int64_t axis = -1);
  void reduction(int op, Tensor x, Tensor into);
  void reshape(Tensor x, Tensor into);
  // One of the uses of a convolution, which is y = w * x: CUDNN_BACKEND_OPERATION_CONVOLUTION_*_DESCRIPTOR. computed: CUDNN_DATA_FLOAT or
  // CUDNN_DATA_DOUBLE. Padding, stride and dilation are those of the spatial dimensions.
  void convolution(int use, std::span<const int64_t> padding, std::span<const int64_t> stride, std::span<const int64_t> dilation,
                   int computed, Tensor x, Tensor w, Tensor y);

  // The graph of all operations so far. handle: of the device that it is for, or null.
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
