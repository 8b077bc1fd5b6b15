// libtorch's modules: module holders, options, and containers. Included by naru/torch.h.
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/torch/tensor.h"

namespace torch {

// A list of names with values, in order; an entry is also a pair.
template <class K, class V>
class OrderedDict {
 public:
  struct Item : std::pair<K, V> {
    using std::pair<K, V>::pair;
    Item(std::pair<K, V> p) : std::pair<K, V>(std::move(p)) {}
    const K& key() const { return this->first; }
    const V& value() const { return this->second; }
    V& value() { return this->second; }
    const V& operator*() const { return this->second; }
  };
  OrderedDict(std::vector<std::pair<K, V>> pairs) {
    for (auto& p : pairs) items_.emplace_back(std::move(p));
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  const std::vector<Item>& items() const { return items_; }
  const V* find(const K& key) const {
    for (const Item& item : items_)
      if (item.first == key) return &item.second;
    return nullptr;
  }
  bool contains(const K& key) const { return find(key) != nullptr; }
  // Throws IndexError for an unknown name.
  const V& operator[](const K& key) const {
    if (const V* found = find(key)) return *found;
    throw naru::IndexError("Argument '{}' is not defined", key);
  }
  const Item& operator[](size_t i) const { return items_[i]; }
  std::vector<K> keys() const {
    std::vector<K> list;
    for (const Item& item : items_) list.push_back(item.first);
    return list;
  }
  std::vector<V> values() const {
    std::vector<V> list;
    for (const Item& item : items_) list.push_back(item.second);
    return list;
  }

 private:
  std::vector<Item> items_;
};

}  // namespace torch

namespace torch::nn {

template <class Impl>
class ModuleHolder;

// Base class of user-defined modules; its register_module also accepts holders. A subclass's forward may have any signature.
class Module : public naru::nn::Module {
 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  using naru::nn::Module::register_module;
  template <class Impl>
  std::shared_ptr<Impl> register_module(std::string name, ModuleHolder<Impl> holder) {
    return naru::nn::Module::register_module(std::move(name), holder.ptr());
  }
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const { return naru::nn::Module::named_parameters(recurse); }
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const { return naru::nn::Module::named_buffers(recurse); }
  std::string name() const override { return name_.empty() ? naru::nn::Module::name() : name_; }

 private:
  std::string name_;
};

// A shared pointer to an Impl. The default constructor creates a new Impl if that is default-constructible; nullptr makes an empty holder.
template <class Impl>
class ModuleHolder {
 public:
  using ContainedType = Impl;
  ModuleHolder() {
    if constexpr (std::is_default_constructible_v<Impl>) impl_ = std::make_shared<Impl>();
  }
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <class First, class... Rest>
  requires(!std::is_base_of_v<ModuleHolder, std::remove_cvref_t<First>> && !std::is_same_v<std::remove_cvref_t<First>, std::nullptr_t> &&
           !std::is_same_v<std::remove_cvref_t<First>, std::shared_ptr<Impl>> && std::is_constructible_v<Impl, First, Rest...>)
      ModuleHolder(First&& first, Rest&&... rest)
      : impl_(std::make_shared<Impl>(std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  Impl* operator->() const { return get(); }
  Impl& operator*() const { return *get(); }
  // Throws RuntimeError if empty.
  Impl* get() const {
    if (!impl_) throw naru::RuntimeError("Accessing empty ModuleHolder");
    return impl_.get();
  }
  const std::shared_ptr<Impl>& ptr() const {
    get();
    return impl_;
  }
  bool is_empty() const noexcept { return impl_ == nullptr; }
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  operator std::shared_ptr<Impl>() const { return impl_; }
  operator std::shared_ptr<naru::nn::Module>() const requires(!std::is_same_v<Impl, naru::nn::Module>) { return impl_; }
  // Hooks run if forward overrides naru's virtual forward, or if the module itself is callable; otherwise this calls forward directly.
  template <class... A>
  auto operator()(A&&... a) const {
    constexpr bool overrides = requires { static_cast<Tensor (Impl::*)(const Tensor&)>(&Impl::forward); };
    if constexpr (overrides && sizeof...(A) == 1 && (std::is_convertible_v<A, const Tensor&> && ...))
      return static_cast<naru::nn::Module&>(*get())(std::forward<A>(a)...);
    else if constexpr (requires(Impl & module) { module(std::forward<A>(a)...); })
      return (*get())(std::forward<A>(a)...);
    else
      return get()->forward(std::forward<A>(a)...);
  }

 protected:
  std::shared_ptr<Impl> impl_;
};

}  // namespace torch::nn

// Defines the holder `name` for the module name##Impl.
#define TORCH_MODULE_IMPL(holder, impl)                 \
  class holder : public torch::nn::ModuleHolder<impl> { \
   public:                                              \
    using torch::nn::ModuleHolder<impl>::ModuleHolder;  \
    using Impl = impl;                                  \
  }
#define TORCH_MODULE(name) TORCH_MODULE_IMPL(name, name##Impl)

namespace torch {

// A value for all dimensions, or one per dimension.
struct Expanding {
  Dims values;
  Expanding(int64_t one) : values{one} {}
  Expanding(int one) : values{one} {}
  Expanding(std::initializer_list<naru::Dims::Entry> list) : values(list) {}
  Expanding(Dims list) : values(std::move(list)) {}
  Expanding(const std::vector<int64_t>& list) : values(list) {}
  operator Dims() const { return values; }
};
template <size_t N>
struct ExpandingArray : Expanding {
  using Expanding::Expanding;
};

}  // namespace torch

namespace torch::nn {

// --- options. Each setter returns the options.
struct LinearOptions {
  int64_t in, out;
  bool with_bias = true;
  LinearOptions(int64_t in_features, int64_t out_features) : in(in_features), out(out_features) {}
  LinearOptions& bias(bool on) { return with_bias = on, *this; }
};
struct ConvOptions {
  int64_t in, out;
  Dims kernel;
  naru::nn::ConvSettings settings = {};
  ConvOptions(int64_t in_channels, int64_t out_channels, Expanding kernel_size)
      : in(in_channels), out(out_channels), kernel(std::move(kernel_size.values)) {}
  ConvOptions& stride(Expanding v) { return settings.stride = v, *this; }
  ConvOptions& padding(Expanding v) { return settings.padding = ConvPadding(v.values), *this; }
  ConvOptions& dilation(Expanding v) { return settings.dilation = v, *this; }
  ConvOptions& output_padding(Expanding v) { return settings.output_padding = v, *this; }
  ConvOptions& groups(int64_t v) { return settings.groups = v, *this; }
  ConvOptions& bias(bool on) { return settings.bias = on, *this; }
};
using Conv1dOptions = ConvOptions;
using Conv2dOptions = ConvOptions;
using Conv3dOptions = ConvOptions;
using ConvTranspose1dOptions = ConvOptions;
using ConvTranspose2dOptions = ConvOptions;
using ConvTranspose3dOptions = ConvOptions;
struct BatchNormOptions {
  int64_t features;
  double eps_ = 1e-5, momentum_ = 0.1;
  bool affine_ = true, track_ = true;
  BatchNormOptions(int64_t num_features) : features(num_features) {}
  BatchNormOptions& eps(double v) { return eps_ = v, *this; }
  BatchNormOptions& momentum(double v) { return momentum_ = v, *this; }
  BatchNormOptions& affine(bool v) { return affine_ = v, *this; }
  BatchNormOptions& track_running_stats(bool v) { return track_ = v, *this; }
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
struct PoolOptions {
  Dims kernel, stride_ = {}, padding_ = {0};
  bool ceil_ = false, count_ = true;
  PoolOptions(Expanding kernel_size) : kernel(std::move(kernel_size.values)) {}
  PoolOptions& stride(Expanding v) { return stride_ = v, *this; }
  PoolOptions& padding(Expanding v) { return padding_ = v, *this; }
  PoolOptions& ceil_mode(bool v) { return ceil_ = v, *this; }
  PoolOptions& count_include_pad(bool v) { return count_ = v, *this; }
};
using MaxPool2dOptions = PoolOptions;
using AvgPool2dOptions = PoolOptions;
struct DropoutOptions {
  double p_;
  bool training_ = true;
  DropoutOptions(double p = 0.5) : p_(p) {}
  DropoutOptions& p(double v) { return p_ = v, *this; }
  DropoutOptions& inplace(bool) { return *this; }
  DropoutOptions& training(bool v) { return training_ = v, *this; }
};
struct EmbeddingOptions {
  int64_t count, width, padding = -1;
  bool is_sparse = false;
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim) : count(num_embeddings), width(embedding_dim) {}
  EmbeddingOptions& padding_idx(int64_t v) { return padding = v, *this; }
  EmbeddingOptions& sparse(bool v) { return is_sparse = v, *this; }
};
struct LayerNormOptions {
  Dims shape;
  double eps_ = 1e-5;
  bool affine_ = true;
  LayerNormOptions(std::vector<int64_t> normalized_shape) : shape(normalized_shape) {}
  LayerNormOptions& eps(double v) { return eps_ = v, *this; }
  LayerNormOptions& elementwise_affine(bool v) { return affine_ = v, *this; }
};
struct LeakyReLUOptions {
  double slope = 0.01;
  LeakyReLUOptions& negative_slope(double v) { return slope = v, *this; }
  LeakyReLUOptions& inplace(bool) { return *this; }
};
struct ReLUOptions {
  ReLUOptions(bool = false) {}
  ReLUOptions& inplace(bool) { return *this; }
};
struct DimOptions {
  int64_t dim;
  DimOptions(int64_t d) : dim(d) {}
};
using SoftmaxOptions = DimOptions;
using LogSoftmaxOptions = DimOptions;
struct FlattenOptions {
  int64_t start = 1, end = -1;
  FlattenOptions& start_dim(int64_t v) { return start = v, *this; }
  FlattenOptions& end_dim(int64_t v) { return end = v, *this; }
};
struct LossOptions {
  Reduction reduction_ = Reduction::Mean;
  Tensor weight_ = {};
  int64_t ignore_ = -100;
  double smoothing_ = 0;
  LossOptions& reduction(Reduction r) { return reduction_ = r, *this; }
  LossOptions& weight(Tensor w) { return weight_ = std::move(w), *this; }
  LossOptions& ignore_index(int64_t v) { return ignore_ = v, *this; }
  LossOptions& label_smoothing(double v) { return smoothing_ = v, *this; }
};
using CrossEntropyLossOptions = LossOptions;
using NLLLossOptions = LossOptions;
using MSELossOptions = LossOptions;
using L1LossOptions = LossOptions;
using BCELossOptions = LossOptions;
using BCEWithLogitsLossOptions = LossOptions;

// --- modules: naru's, which can also be constructed from options
struct LinearImpl : naru::nn::Linear {
  using Linear::Linear;
  LinearImpl(const LinearOptions& o) : Linear(o.in, o.out, o.with_bias) {}
};
template <int N>
struct ConvImpl : naru::nn::Conv<N> {
  ConvImpl(const ConvOptions& o) : naru::nn::Conv<N>(o.in, o.out, o.kernel, o.settings) {}
  ConvImpl(int64_t in, int64_t out, Expanding kernel) : naru::nn::Conv<N>(in, out, kernel.values) {}
};
template <int N>
struct ConvTransposeImpl : naru::nn::ConvTranspose<N> {
  ConvTransposeImpl(const ConvOptions& o) : naru::nn::ConvTranspose<N>(o.in, o.out, o.kernel, o.settings) {}
  ConvTransposeImpl(int64_t in, int64_t out, Expanding kernel) : naru::nn::ConvTranspose<N>(in, out, kernel.values) {}
};
template <int N>
struct BatchNormImpl : naru::nn::BatchNorm<N> {
  BatchNormImpl(const BatchNormOptions& o)
      : naru::nn::BatchNorm<N>(o.features, o.eps_, o.momentum_, o.affine_, naru::Options(), o.track_) {}
  BatchNormImpl(int64_t features) : naru::nn::BatchNorm<N>(features) {}
};
template <int N>
struct MaxPoolImpl : naru::nn::MaxPool<N> {
  MaxPoolImpl(const PoolOptions& o) : naru::nn::MaxPool<N>(o.kernel, o.stride_, o.padding_, Dims{1}, o.ceil_) {}
  MaxPoolImpl(Expanding kernel) : naru::nn::MaxPool<N>(kernel.values) {}
};
template <int N>
struct AvgPoolImpl : naru::nn::AvgPool<N> {
  AvgPoolImpl(const PoolOptions& o) : naru::nn::AvgPool<N>(o.kernel, o.stride_, o.padding_, o.ceil_, o.count_) {}
  AvgPoolImpl(Expanding kernel) : naru::nn::AvgPool<N>(kernel.values) {}
};
struct AdaptiveAvgPool2dImpl : naru::nn::AdaptiveAvgPool2d {
  AdaptiveAvgPool2dImpl(Expanding size) : naru::nn::AdaptiveAvgPool2d(size.values) {}
};
template <class Base>
struct DropoutImplOf : Base {
  DropoutImplOf(const DropoutOptions& o = {}) : Base(o.p_) {}
};
struct EmbeddingImpl : naru::nn::Embedding {
  EmbeddingImpl(const EmbeddingOptions& o) : Embedding(o.count, o.width, o.padding, {}, {}, 2, o.is_sparse) {}
  EmbeddingImpl(int64_t count, int64_t width) : Embedding(count, width) {}
};
struct LayerNormImpl : naru::nn::LayerNorm {
  LayerNormImpl(const LayerNormOptions& o) : LayerNorm(o.shape, o.eps_, o.affine_) {}
};
struct ReLUImpl : naru::nn::ReLU {
  ReLUImpl(const ReLUOptions& = {}) {}
};
struct LeakyReLUImpl : naru::nn::LeakyReLU {
  LeakyReLUImpl(const LeakyReLUOptions& o = {}) : naru::nn::LeakyReLU(o.slope) {}
};
struct SoftmaxImpl : naru::nn::Softmax {
  SoftmaxImpl(const SoftmaxOptions& o) : naru::nn::Softmax(o.dim) {}
};
struct LogSoftmaxImpl : naru::nn::LogSoftmax {
  LogSoftmaxImpl(const LogSoftmaxOptions& o) : naru::nn::LogSoftmax(o.dim) {}
};
struct FlattenImpl : naru::nn::Flatten {
  FlattenImpl(const FlattenOptions& o = {}) : naru::nn::Flatten(o.start, o.end) {}
};
// A function with additional arguments, which follow the tensor.
struct FunctionalImpl : naru::nn::Functional {
  template <class F, class... A>
  requires std::is_invocable_v<F&, const Tensor&, A&...>
  explicit FunctionalImpl(F f, A... rest)
      : naru::nn::Functional([f = std::move(f), ... rest = std::move(rest)](const Tensor& x) mutable -> Tensor { return f(x, rest...); }) {}
};
struct CrossEntropyLossImpl : naru::nn::CrossEntropyLoss {
  CrossEntropyLossImpl(const LossOptions& o = {}) : naru::nn::CrossEntropyLoss(o.reduction_, o.smoothing_, o.weight_, o.ignore_) {}
};
struct NLLLossImpl : naru::nn::NLLLoss {
  NLLLossImpl(const LossOptions& o = {}) : naru::nn::NLLLoss(o.reduction_, o.weight_, o.ignore_) {}
};
template <class Base>
struct LossImplOf : Base {
  LossImplOf(const LossOptions& o = {}) : Base(o.reduction_) {}
};

// Base class of modules that create their parameters in reset(), which the subclass's constructor calls. Cloning requires a default
// constructor.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;

 protected:
  std::shared_ptr<naru::nn::Module> remake() const override {
    if constexpr (std::is_default_constructible_v<Derived>)
      return std::make_shared<Derived>();
    else
      return Module::remake();
  }
};

class SequentialImpl;
// A named module of a Sequential: Sequential({{"first", Linear(3, 4)}, {"act", ReLU()}}).
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module);

 private:
  friend class SequentialImpl;
  std::function<void(SequentialImpl&)> add_;
};

// Calls its modules one after another; each is a module of one tensor.
class SequentialImpl : public Module {
 public:
  SequentialImpl() = default;
  SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& m : modules) m.add_(*this);
  }
  template <class... M>
  requires(sizeof...(M) > 0 && !(std::is_same_v<std::remove_cvref_t<M>, std::initializer_list<NamedAnyModule>> ||
                                 ...)) explicit SequentialImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }
  template <class M>
  void push_back(M&& module) {
    push_back(std::to_string(size()), std::forward<M>(module));
  }
  template <class M>
  void push_back(std::string name, M&& module) {
    const auto impl = shared(std::forward<M>(module));
    naru::nn::Module::register_module(std::move(name), impl);
    calls_.push_back([impl](const Tensor& x) -> Tensor { return impl->forward(x); });
  }
  size_t size() const { return calls_.size(); }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& call : calls_) y = call(y);
    return y;
  }
  std::string name() const override { return "Sequential"; }

 private:
  friend class NamedAnyModule;
  template <class Impl>
  static std::shared_ptr<Impl> shared(const ModuleHolder<Impl>& holder) {
    return holder.ptr();
  }
  template <class Impl>
  static std::shared_ptr<Impl> shared(const std::shared_ptr<Impl>& impl) {
    return impl;
  }
  template <class Impl>
  requires std::is_base_of_v<naru::nn::Module, Impl>
  static std::shared_ptr<Impl> shared(Impl&& module) { return std::make_shared<Impl>(std::move(module)); }
  std::vector<std::function<Tensor(const Tensor&)>> calls_;
};

template <class M>
NamedAnyModule::NamedAnyModule(std::string name, M&& module)
    : add_([name = std::move(name), shared = SequentialImpl::shared(std::forward<M>(module))](SequentialImpl& s) {
        s.push_back(name, shared);
      }) {}

TORCH_MODULE(Linear);
TORCH_MODULE_IMPL(Conv1d, ConvImpl<1>);
TORCH_MODULE_IMPL(Conv2d, ConvImpl<2>);
TORCH_MODULE_IMPL(Conv3d, ConvImpl<3>);
TORCH_MODULE_IMPL(ConvTranspose1d, ConvTransposeImpl<1>);
TORCH_MODULE_IMPL(ConvTranspose2d, ConvTransposeImpl<2>);
TORCH_MODULE_IMPL(ConvTranspose3d, ConvTransposeImpl<3>);
TORCH_MODULE_IMPL(BatchNorm1d, BatchNormImpl<1>);
TORCH_MODULE_IMPL(BatchNorm2d, BatchNormImpl<2>);
TORCH_MODULE_IMPL(BatchNorm3d, BatchNormImpl<3>);
TORCH_MODULE_IMPL(MaxPool1d, MaxPoolImpl<1>);
TORCH_MODULE_IMPL(MaxPool2d, MaxPoolImpl<2>);
TORCH_MODULE_IMPL(MaxPool3d, MaxPoolImpl<3>);
TORCH_MODULE_IMPL(AvgPool1d, AvgPoolImpl<1>);
TORCH_MODULE_IMPL(AvgPool2d, AvgPoolImpl<2>);
TORCH_MODULE_IMPL(AvgPool3d, AvgPoolImpl<3>);
TORCH_MODULE(AdaptiveAvgPool2d);
TORCH_MODULE_IMPL(Dropout, DropoutImplOf<naru::nn::Dropout>);
TORCH_MODULE_IMPL(Dropout2d, DropoutImplOf<naru::nn::Dropout2d>);
TORCH_MODULE_IMPL(Dropout3d, DropoutImplOf<naru::nn::Dropout3d>);
TORCH_MODULE(Embedding);
TORCH_MODULE(LayerNorm);
TORCH_MODULE(ReLU);
TORCH_MODULE(LeakyReLU);
TORCH_MODULE_IMPL(Tanh, naru::nn::Tanh);
TORCH_MODULE_IMPL(Sigmoid, naru::nn::Sigmoid);
TORCH_MODULE_IMPL(GELU, naru::nn::GELU);
TORCH_MODULE_IMPL(SiLU, naru::nn::SiLU);
TORCH_MODULE_IMPL(ELU, naru::nn::ELU);
TORCH_MODULE_IMPL(Identity, naru::nn::Identity);
TORCH_MODULE(Softmax);
TORCH_MODULE(LogSoftmax);
TORCH_MODULE(Flatten);
TORCH_MODULE(Functional);
TORCH_MODULE(CrossEntropyLoss);
TORCH_MODULE(NLLLoss);
TORCH_MODULE_IMPL(MSELoss, LossImplOf<naru::nn::MSELoss>);
TORCH_MODULE_IMPL(L1Loss, LossImplOf<naru::nn::L1Loss>);
TORCH_MODULE_IMPL(BCELoss, LossImplOf<naru::nn::BCELoss>);
TORCH_MODULE_IMPL(BCEWithLogitsLoss, LossImplOf<naru::nn::BCEWithLogitsLoss>);
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential(std::initializer_list<NamedAnyModule> modules) : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

namespace init = naru::nn::init;
namespace utils = naru::nn::utils;

}  // namespace torch::nn
