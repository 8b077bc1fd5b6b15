// User-defined kernels, written in a small C dialect (docs/kernels.md) that runs on every device.
//
//   const naru::Kernel add("kernel void vec_add(const float* a, const float* b, float* out) { int i = global_id(0); out[i] = a[i] + b[i]; }",
//                          "vec_add");
//   add({a, b, out}, {.grid = {n}});                       // exactly n work items
//   add({a, b, out}, {.blocks = {n / 256}, .threads = {256}});
//
// The arguments determine the device; a kernel is compiled at its first call for a device. Pointers to const are inputs, other pointers are
// outputs.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru {

// The number of work items, x first, up to 3 dimensions. Either `grid`: exactly that many items, in work groups of `threads` (default 256,
// 16 x 16 or 8 x 8 x 4; the last groups may be smaller), or `blocks` work groups of `threads` each.
struct Extent {
  Dims grid{}, blocks{}, threads{};
  int64_t shared = 0;  // bytes of an unsized shared array, as CUDA's `extern __shared__ float part[]`
};

// A tensor for a pointer parameter, a scalar for any other.
class KernelArgument {
 public:
  KernelArgument(const Tensor& t) : tensor_(t) {}
  KernelArgument(Scalar s) : number_(s), is_number_(true) {}
  template <class T>
  requires std::is_arithmetic_v<T> KernelArgument(T v) : KernelArgument(Scalar(v)) {}
  const Tensor* tensor() const noexcept { return is_number_ ? nullptr : &tensor_; }
  const Scalar& number() const noexcept { return number_; }

 private:
  Tensor tensor_;
  Scalar number_;
  bool is_number_ = false;
};

// The arguments of a backward function.
class KernelContext {
 public:
  // Gradients of the outputs, in the order of their parameters; zeros where there is no gradient.
  std::vector<Tensor> grads;
  Extent extent;
  // A forward argument by its parameter's name; an output has the value that the kernel wrote. Throws RuntimeError if it was overwritten
  // since.
  std::function<KernelArgument(const std::string& name)> argument;
};

class Kernel {
 public:
  // Returns gradients of the inputs (pointers to const), in the order of their parameters; undefined ones mean no gradient. Gradients of
  // the outputs' previous contents may follow, for kernels that read them.
  using Backward = std::function<std::vector<Tensor>(const KernelContext&)>;

  // Throws ValueError if the source can't be parsed or contains no kernel of this name.
  Kernel(const std::string& source, const std::string& name);
  // Makes the kernel differentiable, by a function or by another kernel of the same source and the same extent. Its parameters are: grad_X
  // for an output X, the gradient of X (if not const, the kernel replaces it by the gradient of X's previous contents); grad_X for an input
  // X, which receives that input's gradient (zeros before the kernel runs); other parameters receive the forward argument of the same name.
  Kernel& set_backward(Backward backward);
  Kernel& set_backward(const std::string& kernel);

  // Enqueues the kernel on the device. Throws TypeError, ValueError, DeviceMismatchError or RuntimeError naming the parameter, and
  // RuntimeError with the source lines that the compiler rejects.
  void operator()(std::span<const KernelArgument> arguments, const Extent& extent) const;
  void operator()(std::initializer_list<KernelArgument> arguments, const Extent& extent) const;

  const std::string& name() const;
  // "kernel void vec_add(const float* a, const float* b, float* out)".
  std::string signature() const;
  // Names of all parameters; of the inputs (pointers to const); of the outputs (other pointers).
  std::vector<std::string> parameters() const;
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;

  struct Plan;

 private:
  std::shared_ptr<Plan> plan_;
};

}  // namespace naru
