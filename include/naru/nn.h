// Neural networks in C++: modules that hold parameters, buffers and other modules by name. Semantics, names in the
// state dict and initialisation are those of torch.nn; the work is done by the functions of naru/ops.h.
//
//   nn::Sequential model(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10));
//   model.to("cuda");
//   Tensor scores = model(x);
//
// A module of one's own:
//
//   struct Net : nn::Module {
//     std::shared_ptr<nn::Linear> first = register_module("first", nn::Linear(784, 256));
//     Tensor scale = register_parameter("scale", ones({256}));
//     Tensor forward(const Tensor& x) override { return (*first)(x).relu() * scale; }
//   };
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "naru/ops.h"
#include "naru/tensor.h"

namespace naru::nn {

// Tensors with the names of their places ("0.weight"), in the order of registration.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A module can be moved, not copied: its parameters are its own. `to` changes the parameters themselves, so handles to
// them (an optimizer's, a member's) stay right.
class Module {
 public:
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;
  virtual ~Module() = default;

  // The module's function. Modules of several arguments declare a function of their own; this one then throws
  // NotImplementedError.
  virtual Tensor forward(const Tensor& x);
  Tensor operator()(const Tensor& x) { return forward(x); }

  // Gives a place to a tensor that the optimizer changes (it requires grad from now on; an undefined one stands for
  // "none")...
  Tensor register_parameter(std::string name, Tensor t);
  // ... to one that moves with the module and is saved (unless not persistent) but not trained...
  Tensor register_buffer(std::string name, Tensor t, bool persistent = true);
  // ... and to another module.
  template <class M>
  requires std::is_base_of_v<Module, M> std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  requires std::is_base_of_v<Module, M> std::shared_ptr<M> register_module(std::string name, M&& module) {
    return register_module(std::move(name), std::make_shared<M>(std::move(module)));
  }

  // This module's and, with `recurse`, those of all modules below; each tensor once.
  NamedTensors named_parameters(bool recurse = true) const;
  NamedTensors named_buffers(bool recurse = true) const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const noexcept { return children_; }

  // Parameters and persistent buffers, sharing memory with the module.
  NamedTensors state_dict() const;
  // Copies values into the module's own tensors (any device, any dtype). With `strict`, RuntimeError for keys missing
  // or unexpected, in PyTorch's words; always for shapes that differ. Nothing is written if there is an error.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  // Dropout and its like behave differently in training.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const noexcept { return training_; }
  // Calls f with every module below, then with this one.
  Module& apply(const std::function<void(Module&)>& f);
  // In place; only floating-point tensors change their dtype. Throws TypeError for a dtype that is not floating point.
  Module& to(Device device, bool non_blocking = false);
  Module& to(DType dtype);
  Module& requires_grad_(bool on = true);
  void zero_grad(bool set_to_none = true);

  // "Linear", and what stands in the brackets behind it.
  virtual std::string name() const { return "Module"; }
  virtual std::string details() const { return ""; }
  // The tree of modules, as PyTorch prints it.
  std::string str() const;

 protected:
  void add_child(std::string name, std::shared_ptr<Module> module);

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  // Calls f(prefix, module) for this module and all below.
  void walk(const std::string& prefix, const std::function<void(const std::string&, const Module&)>& f) const;
  void each_tensor(const std::function<void(Tensor&)>& f);
  void check_name(const std::string& name) const;

  NamedTensors parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

// --- containers
// -------------------------------------------------------------------------------------------------------------------

// Calls its modules one after another. Names: "0", "1" ...
class Sequential : public Module {
 public:
  Sequential() = default;
  template <class... M>
  requires(sizeof...(M) > 0 && (std::is_base_of_v<Module, std::remove_cvref_t<M>> && ...)) explicit Sequential(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  Sequential(Sequential&&) = default;
  Sequential& operator=(Sequential&&) = default;
  template <class M>
  requires std::is_base_of_v<Module, M>
  void push_back(M&& module) { push_back(std::make_shared<M>(std::move(module))); }
  void push_back(std::shared_ptr<Module> module);
  size_t size() const noexcept { return named_children().size(); }
  Module& operator[](size_t i) const;
  using Module::operator();
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "Sequential"; }
};

// Holds modules in a list; the owner calls them.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  template <class M>
  requires std::is_base_of_v<Module, M>
  void push_back(M&& module) { push_back(std::make_shared<M>(std::move(module))); }
  void push_back(std::shared_ptr<Module> module);
  size_t size() const noexcept { return named_children().size(); }
  Module& operator[](size_t i) const;
  std::string name() const override { return "ModuleList"; }
};

// Holds modules by name.
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  template <class M>
  requires std::is_base_of_v<Module, M>
  void insert(std::string key, M&& module) { add_child(std::move(key), std::make_shared<M>(std::move(module))); }
  size_t size() const noexcept { return named_children().size(); }
  bool contains(const std::string& key) const noexcept;
  Module& operator[](const std::string& key) const;  // IndexError, with the keys there are
  std::string name() const override { return "ModuleDict"; }
};

// --- layers
// -----------------------------------------------------------------------------------------------------------------------

// y = x wᵀ + b: (..., in) to (..., out). weight (out, in) and bias (out) start uniform in ± 1 / sqrt(in).
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool bias = true, const Options& options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override { return linear(x, weight, bias); }
  std::string name() const override { return "Linear"; }
  std::string details() const override;
  Tensor weight, bias;  // bias: undefined if there is none
};

// Row i of weight (count, width) for each integer i; rows start normal(0, 1), that of padding_idx zero and without
// gradient.
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width, int64_t padding_idx = -1, const Options& options = {});
  void reset_parameters();
  Tensor forward(const Tensor& index) override { return embedding(weight, index, padding_); }
  std::string name() const override { return "Embedding"; }
  std::string details() const override;
  Tensor weight;

 private:
  int64_t padding_;
};

// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, of shape normalized_shape.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(Dims normalized_shape, double eps = 1e-5, bool elementwise_affine = true, bool bias = true,
                     const Options& options = {});
  explicit LayerNorm(int64_t width) : LayerNorm(Dims{width}) {}
  Tensor forward(const Tensor& x) override { return layer_norm(x, shape_, weight, bias, eps_); }
  std::string name() const override { return "LayerNorm"; }
  std::string details() const override;
  Tensor weight, bias;

 private:
  Dims shape_;
  double eps_;
};

// In training: each element becomes 0 with probability p, the rest grow by 1 / (1 - p).
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override { return dropout(x, p_, is_training()); }
  std::string name() const override { return "Dropout"; }
  std::string details() const override;

 private:
  double p_;
};

class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::string name() const override { return "ReLU"; }
};
class GELU : public Module {
 public:
  explicit GELU(bool by_tanh = false) : by_tanh_(by_tanh) {}
  Tensor forward(const Tensor& x) override { return by_tanh_ ? gelu_tanh(x) : gelu(x); }
  std::string name() const override { return "GELU"; }
  std::string details() const override { return by_tanh_ ? "approximate='tanh'" : "approximate='none'"; }

 private:
  bool by_tanh_;
};
class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
  std::string name() const override { return "Tanh"; }
};
class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
  std::string name() const override { return "Sigmoid"; }
};
class Flatten : public Module {
 public:
  explicit Flatten(int64_t start = 1, int64_t end = -1) : start_(start), end_(end) {}
  Tensor forward(const Tensor& x) override { return x.flatten(start_, end_); }
  std::string name() const override { return "Flatten"; }
  std::string details() const override;

 private:
  int64_t start_, end_;
};

// --- losses
// -------------------------------------------------------------------------------------------------------------------------

// cross_entropy: input (N, C) of unnormalised log probabilities, target class numbers (N), or probabilities (N, C).
class CrossEntropyLoss : public Module {
 public:
  explicit CrossEntropyLoss(Reduction reduction = Reduction::Mean, double label_smoothing = 0, Tensor weight = {},
                            int64_t ignore_index = -100);
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& target) {
    return cross_entropy(input, target, weight_, reduction_, ignore_index_, label_smoothing_);
  }
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }
  std::string name() const override { return "CrossEntropyLoss"; }

 private:
  Reduction reduction_;
  double label_smoothing_;
  Tensor weight_;
  int64_t ignore_index_;
};

// The mean (or sum) of squared differences.
class MSELoss : public Module {
 public:
  explicit MSELoss(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& target) { return mse_loss(input, target, reduction_); }
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }
  std::string name() const override { return "MSELoss"; }

 private:
  Reduction reduction_;
};

// --- initialisation (He et al., 2015)
// -----------------------------------------------------------------------------------------------

// Uniform in ± gain · sqrt(3 / fan_in), gain = sqrt(2 / (1 + a²)); a is the slope that the following leaky ReLU has. At
// least 2 dimensions.
void kaiming_uniform_(const Tensor& t, double a = 0);

}  // namespace naru::nn
