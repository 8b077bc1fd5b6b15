// Module: the base class of layers and models, a tree of named parameters, buffers and submodules; and containers. Semantics, state-dict
// names and printed texts are torch.nn's.
//
//   struct Net : nn::Module {
//     std::shared_ptr<nn::Linear> first = register_module("first", nn::Linear(784, 256));
//     Tensor scale = register_parameter("scale", ones({256}));
//     Tensor forward(const Tensor& x) override { return (*first)(x).relu() * scale; }
//   };
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "naru/autograd/hooks.h"
#include "naru/ops.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::nn {

// Tensors with their qualified names ("0.weight"), in registration order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Module;
// What can be registered as a module: a shared_ptr to one, an rvalue, or a ModuleHolder (naru/torch.h).
template <class M>
concept ModuleLike = std::is_base_of_v<Module, std::remove_cvref_t<M>> || std::convertible_to<M, std::shared_ptr<Module>>;

// A module can be moved but not copied, because it owns its parameters (see clone). `to` changes the parameters in place, so handles to
// them (in an optimizer or a member) stay valid.
class Module {
 public:
  Module();
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  Module(const Module&) = delete;
  virtual ~Module();

  // The module's function. Modules with several arguments declare another overload; this one then throws NotImplementedError. Use
  // operator() so that hooks run.
  virtual Tensor forward(const Tensor& x);
  Tensor operator()(const Tensor& x) { return hooks_ ? call_with_hooks(x) : forward(x); }

  // Registers a trainable tensor, which requires grad afterwards. An undefined tensor means "none".
  Tensor register_parameter(std::string name, Tensor t);
  // Registers a tensor that moves with the module and is saved (if persistent), but not trained.
  Tensor register_buffer(std::string name, Tensor t, bool persistent = true);
  // Registers a submodule.
  template <class M>
  requires std::is_base_of_v<Module, M> std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  requires(std::is_base_of_v<Module, M> && !std::is_lvalue_reference_v<M>) std::shared_ptr<M> register_module(std::string name,
                                                                                                              M&& module) {
    return register_module(std::move(name), std::make_shared<M>(std::move(module)));
  }
  template <class M>
  requires std::is_base_of_v<Module, M>
  void register_module(const std::string&, M&) {
    static_assert(!std::is_base_of_v<Module, M>,
                  "register_module: a module that is a member by value cannot be shared with its owner. Make the member a pointer: "
                  "std::shared_ptr<Linear> first = register_module(\"first\", Linear(784, 256));");
  }
  // Replaces or removes a submodule. Throws ValueError if there is none of that name.
  void replace_module(const std::string& name, std::shared_ptr<Module> module);
  void unregister_module(const std::string& name);

  // This module's and, with `recurse`, those of all submodules; each tensor once.
  NamedTensors named_parameters(bool recurse = true) const;
  NamedTensors named_buffers(bool recurse = true) const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const noexcept { return children_; }
  std::vector<std::shared_ptr<Module>> children() const;
  // This module ("") and all submodules with their qualified names, each once.
  std::vector<std::pair<std::string, Module*>> named_modules();
  std::vector<Module*> modules();
  // Look up by dotted path ("encoder.0.weight"). Throw ValueError, with the text of PyTorch's AttributeError, if there is none.
  Module& get_submodule(const std::string& path);
  Tensor get_parameter(const std::string& path);
  Tensor get_buffer(const std::string& path);
  // Downcast to a class; null if the module is not one.
  template <class M>
  M* as() noexcept {
    return dynamic_cast<M*>(this);
  }

  // Parameters and persistent buffers; they share memory with the module.
  NamedTensors state_dict() const;
  // Copies values into the module's tensors, from any device and dtype. With `strict`, throws RuntimeError for missing or unexpected keys,
  // with PyTorch's texts; for different shapes always. If it throws, nothing is written.
  void load_state_dict(const NamedTensors& state, bool strict = true, SourceLocation where = NARU_CURRENT_LOCATION);
  // A deep copy, optionally on `device`, without hooks. Throws NotImplementedError naming the class for modules that don't define how to
  // create a new instance (see Cloneable).
  std::shared_ptr<Module> clone(std::optional<Device> device = {}) const;

  // Sets training mode, which affects dropout and similar layers.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const noexcept { return training_; }
  // Calls f for every submodule, then for this module.
  Module& apply(const std::function<void(Module&)>& f);
  // In place; only floating-point tensors change their dtype. Throws TypeError for a dtype that is not floating point.
  Module& to(Device device, bool non_blocking = false);
  Module& to(DType dtype);
  Module& to(Device device, DType dtype) { return to(device).to(dtype); }
  Module& cpu() { return to(Device(DeviceType::Cpu)); }
  Module& cuda(int index = -1) { return to(Device(DeviceType::Cuda, index)); }
  Module& half() { return to(DType::F16); }
  Module& bfloat16() { return to(DType::BF16); }
  Module& requires_grad_(bool on = true);
  void zero_grad(bool set_to_none = true);

  // --- hooks. A hook's result replaces the tensor it was given, unless the result is undefined (empty). The module must stay alive while
  // hooks can run.
  // For calls with one tensor; a call with several inputs or outputs throws RuntimeError.
  using PreHook = std::function<Tensor(Module&, const Tensor& input)>;
  using Hook = std::function<Tensor(Module&, const Tensor& input, const Tensor& output)>;
  using BackwardHook = std::function<Tensor(Module&, const Tensor& grad_input, const Tensor& grad_output)>;
  using BackwardPreHook = std::function<Tensor(Module&, const Tensor& grad_output)>;
  HookHandle register_forward_pre_hook(PreHook hook);
  HookHandle register_forward_hook(Hook hook);
  // Called when backward has passed through the module; grad_input is undefined if the input requires no gradient.
  HookHandle register_full_backward_hook(BackwardHook hook);
  HookHandle register_full_backward_pre_hook(BackwardPreHook hook);
  // For calls with any number of tensors (Bilinear, losses, LSTM ...): all tensors in the order of arguments and results, with pairs, lists
  // and packed sequences flattened, and omitted arguments undefined. Throws RuntimeError if a hook returns another number of tensors.
  using Tensors = std::vector<Tensor>;
  using ListPreHook = std::function<Tensors(Module&, const Tensors& inputs)>;
  using ListHook = std::function<Tensors(Module&, const Tensors& inputs, const Tensors& outputs)>;
  using ListBackwardHook = std::function<Tensors(Module&, const Tensors& grad_inputs, const Tensors& grad_outputs)>;
  using ListBackwardPreHook = std::function<Tensors(Module&, const Tensors& grad_outputs)>;
  HookHandle register_forward_pre_hook(ListPreHook hook);
  HookHandle register_forward_hook(ListHook hook);
  HookHandle register_full_backward_hook(ListBackwardHook hook);
  HookHandle register_full_backward_pre_hook(ListBackwardPreHook hook);

  // For printing: "Linear", and the text in the brackets after it.
  virtual std::string name() const;
  virtual std::string details() const;
  // The tree of modules, as PyTorch prints it.
  std::string str() const;

 protected:
  void add_child(std::string name, std::shared_ptr<Module> module);
  // Creates a module with the same structure and arbitrary values; the first step of clone().
  virtual std::shared_ptr<Module> remake() const;
  // Called before a state is loaded whose entries for this module begin with `prefix`. Lazy modules infer their sizes here.
  virtual void before_load(const NamedTensors&, const std::string&) {}
  // Copies the tensors of a module with the same structure into this module's, which keep their handles, device and dtype.
  void become(const Module& other);
  // Calls f(arguments...) with the hooks around it. For the operator() of a module whose forward has several tensors or other arguments:
  //   Tensor operator()(const Tensor& a, const Tensor& b) {
  //     return with_hooks([this](const Tensor& a, const Tensor& b) { return forward(a, b); }, a, b);
  //   }
  template <class F, class... A>
  auto with_hooks(const F& f, const A&... arguments) {
    using Result = std::remove_cvref_t<std::invoke_result_t<const F&, const A&...>>;
    if (!hooks_) return Result(f(arguments...));
    std::tuple<A...> own(arguments...);
    Tensors inputs = tensors_in(own);
    const std::shared_ptr<HookedCall> call = begin_call(inputs);
    put_back(own, inputs);
    Result result = std::apply(f, own);
    Tensors outputs = tensors_in(result);
    end_call(call, inputs, outputs);
    put_back(result, outputs);
    return result;
  }
  // Calls f() and restores the default generator's state.
  template <class F>
  static auto without_draws(const F& f) {
    Generator& numbers = default_generator();
    const uint64_t seed = numbers.initial_seed(), offset = numbers.offset();
    auto made = f();
    numbers.set_state(seed, offset);
    return made;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  struct Hooks;
  struct HookedCall;
  // Run the hooks before and after forward, which may replace the tensors.
  std::shared_ptr<HookedCall> begin_call(Tensors& inputs);
  void end_call(const std::shared_ptr<HookedCall>& call, const Tensors& inputs, Tensors& outputs);
  Hooks& own_hooks();
  template <class T, class F>
  static void each_tensor_of(T& value, const F& f) {
    if constexpr (std::is_same_v<T, Tensor>)
      f(value);
    else if constexpr (requires { value.each_tensor(f); })
      value.each_tensor(f);
    else if constexpr (requires { value.begin()->defined(); })
      for (auto& each : value) each_tensor_of(each, f);
    else if constexpr (requires { std::tuple_size<T>::value; })
      std::apply([&](auto&... each) { (each_tensor_of(each, f), ...); }, value);
  }
  static void keep(Tensors& list, const Tensor& t);
  template <class T>
  static Tensors tensors_in(T& value) {
    Tensors list;
    each_tensor_of(value, [&](Tensor& t) { keep(list, t); });
    return list;
  }
  template <class T>
  static void put_back(T& value, const Tensors& list) {
    size_t i = 0;
    each_tensor_of(value, [&](Tensor& t) { t = list[i++]; });
  }
  // Calls f(prefix, module) for this module and all submodules.
  void walk(const std::string& prefix, const std::function<void(const std::string&, const Module&)>& f) const;
  void each_tensor(const std::function<void(Tensor&)>& f);
  void check_name(const std::string& name) const;
  void take_state(const Module& from, std::optional<Device> device);
  void announce_load(const NamedTensors& state, const std::string& prefix);
  Tensor call_with_hooks(const Tensor& x);

  NamedTensors parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::shared_ptr<Hooks> hooks_;  // null until a hook is registered
  bool training_ = true;
};

// Base class of modules that can be cloned: `D` is default-constructible or overrides remake().
template <class D>
class Cloneable : public Module {
 protected:
  std::shared_ptr<Module> remake() const override { return std::make_shared<D>(); }
};

// Converts anything ModuleLike to a shared_ptr.
template <class M>
requires ModuleLike<M> std::shared_ptr<Module> share_module(M&& module) {
  using D = std::remove_cvref_t<M>;
  if constexpr (std::is_base_of_v<Module, D>) {
    static_assert(!std::is_lvalue_reference_v<M>, "a module can't be copied: std::move() it, or make it with std::make_shared");
    return std::make_shared<D>(std::move(module));
  } else {
    return std::forward<M>(module);
  }
}

// --- containers --------------------------------------------------------------------------------------------------------------------

// Calls its modules one after another. Names: "0", "1" ..., or given ones. With braces, modules are constructed, and draw random numbers,
// in order; parentheses don't guarantee that.
class Sequential : public Module {
 public:
  Sequential();
  template <class... M>
  requires(sizeof...(M) > 0 && (ModuleLike<M> && ...)) explicit Sequential(M&&... modules) { (push_back(std::forward<M>(modules)), ...); }
  Sequential(Sequential&&);
  Sequential& operator=(Sequential&&);
  template <class M>
  requires ModuleLike<M>
  void push_back(M&& module) { push_back(std::to_string(size()), std::forward<M>(module)); }
  template <class M>
  requires ModuleLike<M>
  void push_back(std::string name, M&& module) { add_child(std::move(name), share_module(std::forward<M>(module))); }
  size_t size() const noexcept;
  Module& operator[](size_t i) const;
  using Module::operator();
  Tensor forward(const Tensor& x) override;
  std::string name() const override;

 protected:
  std::shared_ptr<Module> remake() const override;
};

// A list of modules; the owner calls them.
class ModuleList : public Module {
 public:
  ModuleList();
  template <class M>
  requires ModuleLike<M>
  void push_back(M&& module) { add_child(std::to_string(size()), share_module(std::forward<M>(module))); }
  size_t size() const noexcept;
  Module& operator[](size_t i) const;
  std::string name() const override;

 protected:
  std::shared_ptr<Module> remake() const override;
};

// A dict of modules by name.
class ModuleDict : public Module {
 public:
  ModuleDict();
  template <class M>
  requires ModuleLike<M>
  void insert(std::string key, M&& module) { add_child(std::move(key), share_module(std::forward<M>(module))); }
  size_t size() const noexcept;
  bool contains(const std::string& key) const noexcept;
  Module& operator[](const std::string& key) const;  // throws IndexError, listing the existing keys
  std::string name() const override;

 protected:
  std::shared_ptr<Module> remake() const override;
};

// A list, and a dict, of parameters.
class ParameterList : public Module {
 public:
  ParameterList();
  explicit ParameterList(const std::vector<Tensor>& values);
  void push_back(const Tensor& t);
  size_t size() const;
  Tensor operator[](size_t i) const;  // throws IndexError
  std::string name() const override;

 protected:
  std::shared_ptr<Module> remake() const override;
};
class ParameterDict : public Module {
 public:
  ParameterDict();
  void insert(std::string key, const Tensor& t);
  size_t size() const;
  bool contains(const std::string& key) const;
  Tensor operator[](const std::string& key) const;  // throws IndexError
  std::string name() const override;

 protected:
  std::shared_ptr<Module> remake() const override;
};

}  // namespace naru::nn
