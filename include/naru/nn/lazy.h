// Lazy modules: layers that infer their number of input features or channels from the first input (or the first loaded state). Their
// parameters exist from the start, without elements, so an optimizer created before the first call is valid.
//
//   nn::Sequential model{nn::LazyConv2d(16, Dims{3}), nn::ReLU(), nn::Flatten(), nn::LazyLinear(10)};
//   model(x);                       // from here on these are Conv2d and Linear, also by name
#pragma once

#include <string>
#include <utility>

#include "naru/nn.h"
#include "naru/nn/images.h"
#include "naru/standard.h"

namespace naru::nn {

template <class Base>
class Lazy : public Base {
 public:
  struct Parts {
    std::function<Base(int64_t in)> make;
    int64_t (*of_input)(const Tensor& x);  // number of input features; -1 if x is invalid, which the layer then reports
    std::function<int64_t(const Tensor&)> of_weight;
    const char* weight;  // the state entry that determines the number
  };
  explicit Lazy(Parts parts) : Base(Module::without_draws([&] { return parts.make(0); })), parts_(std::move(parts)) {}

  using Base::operator();
  Tensor forward(const Tensor& x) override {
    if (!known_)
      if (const int64_t in = parts_.of_input(x); in >= 0) fit(in);
    return Base::forward(x);
  }
  // True if the number of inputs is still unknown.
  bool has_uninitialized_params() const noexcept { return !known_; }
  std::string name() const override { return known_ ? Base::name() : "Lazy" + Base::name(); }

 protected:
  void before_load(const NamedTensors& state, const std::string& prefix) override {
    for (const auto& [key, t] : state)
      if (!known_ && key == prefix + parts_.weight && t.dim() > 0 && t.numel() > 0) fit(parts_.of_weight(t));
  }
  std::shared_ptr<Module> remake() const override {
    if (known_) return Base::remake();
    return std::make_shared<Lazy>(parts_);
  }

 private:
  void fit(int64_t in) {
    this->become(parts_.make(in));
    if constexpr (requires { this->features_; }) this->features_ = in;
    known_ = true;
  }
  Parts parts_;
  bool known_ = false;
};

class LazyLinear : public Lazy<Linear> {
 public:
  explicit LazyLinear(int64_t out_features, bool bias = true, const Options& options = {});
};
template <int N>
class LazyConv : public Lazy<Conv<N>> {
 public:
  LazyConv(int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
};
template <int N>
class LazyConvTranspose : public Lazy<ConvTranspose<N>> {
 public:
  LazyConvTranspose(int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
};
template <int N>
class LazyBatchNorm : public Lazy<BatchNorm<N>> {
 public:
  explicit LazyBatchNorm(double eps = 1e-5, double momentum = 0.1, bool affine = true, const Options& options = {},
                         bool track_running_stats = true);
};
template <int N>
class LazyInstanceNorm : public Lazy<InstanceNorm<N>> {
 public:
  explicit LazyInstanceNorm(double eps = 1e-5, double momentum = 0.1, bool affine = false, bool track_running_stats = false,
                            const Options& options = {});
};
using LazyConv1d = LazyConv<1>;
using LazyConv2d = LazyConv<2>;
using LazyConv3d = LazyConv<3>;
using LazyConvTranspose1d = LazyConvTranspose<1>;
using LazyConvTranspose2d = LazyConvTranspose<2>;
using LazyConvTranspose3d = LazyConvTranspose<3>;
using LazyBatchNorm1d = LazyBatchNorm<1>;
using LazyBatchNorm2d = LazyBatchNorm<2>;
using LazyBatchNorm3d = LazyBatchNorm<3>;
using LazyInstanceNorm1d = LazyInstanceNorm<1>;
using LazyInstanceNorm2d = LazyInstanceNorm<2>;
using LazyInstanceNorm3d = LazyInstanceNorm<3>;

}  // namespace naru::nn
