// Kernels of your own: written once in a small C dialect (docs/kernels.md), run on every device.
//
//   const naru::Kernel add("kernel void vec_add(const float* a, const float* b, float* out) { int i = global_id(0); out[i] = a[i] + b[i]; }",
//                          "vec_add");
//   add({a, b, out}, {.grid = {n}});                       // exactly n items
//   add({a, b, out}, {.blocks = {n / 256}, .threads = {256}});
//
// Where the arguments live decides the device; it compiles at the first call there. Pointers to const are read, others written.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru {

// How many items run, x first, up to 3 dimensions. Either `grid`: exactly so many, in groups of `threads` (256, 16 x 16 or 8 x 8 x 4 unless given;
// the last ones may be smaller); or `blocks` groups of `threads` each.
struct Extent {
  Dims grid{}, blocks{}, threads{};
  int64_t shared = 0;  // bytes of a shared array without a length: CUDA's `extern __shared__ float part[]`
};

// A tensor for a pointer, a number for anything else.
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

// What a backward function is given.
class KernelContext {
 public:
  // Of the outputs, in the order of their parameters; zeros where no gradient came.
  std::vector<Tensor> grads;
  Extent extent;
  // A forward argument by its parameter's name: an output has the value that the kernel left. Throws RuntimeError if it was written since.
  std::function<KernelArgument(const std::string& name)> argument;
};

class Kernel {
 public:
  // Gradients of the inputs (pointers to const), in the order of their parameters; undefined ones count as none. Gradients of what the outputs held
  // before may follow, for kernels that read them.
  using Backward = std::function<std::vector<Tensor>(const KernelContext&)>;

  // Throws ValueError for a source that can't be read, and for a name that is none of its kernels.
  Kernel(const std::string& source, const std::string& name);
  // Makes it differentiable: by a function; or by another kernel of the source, of the same extent, whose parameters are called grad_X, for the
  // gradient of output X (const, or not: then it leaves what X held before its gradient there) or for that of input X (zeros before it runs), and
  // otherwise as the forward arguments they get.
  Kernel& set_backward(Backward backward);
  Kernel& set_backward(const std::string& kernel);

  // Runs it behind everything else that was asked of the device. Throws TypeError, ValueError, DeviceMismatchError or RuntimeError that names the
  // parameter, and RuntimeError with the user's lines that the compiler refuses.
  void operator()(std::span<const KernelArgument> arguments, const Extent& extent) const;
  void operator()(std::initializer_list<KernelArgument> arguments, const Extent& extent) const;

  const std::string& name() const;
  // "kernel void vec_add(const float* a, const float* b, float* out)".
  std::string signature() const;
  // Names of the parameters; of those that are inputs (pointers to const) or outputs (other pointers).
  std::vector<std::string> parameters() const;
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;

  struct Plan;

 private:
  std::shared_ptr<Plan> plan_;
};

}  // namespace naru
