// Layers without parameters. Each wraps a function of one tensor (documented in naru/nn/functional.h), with its name and settings.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "naru/nn/module.h"
#include "naru/standard.h"

namespace naru::nn {

// Base class of these layers.
class Stateless : public Module {
 public:
  struct Parts {
    std::function<Tensor(const Tensor&)> call;
    std::string name, details;
  };
  explicit Stateless(Parts parts);
  Tensor forward(const Tensor& x) override;
  std::string name() const override;
  std::string details() const override;

 protected:
  Parts parts_;
};
template <class D>
class Layer : public Stateless {
 public:
  using Stateless::Stateless;

 protected:
  std::shared_ptr<Module> remake() const override { return std::make_shared<D>(parts_); }
};

// Wraps any function as a layer: nn::Functional([](const Tensor& x) { return x.view({-1, 4}); }).
class Functional : public Layer<Functional> {
 public:
  using Layer::Layer;
  explicit Functional(std::function<Tensor(const Tensor&)> f);
};
// Returns its input.
class Identity : public Layer<Identity> {
 public:
  using Layer::Layer;
  Identity();
};
class Flatten : public Layer<Flatten> {
 public:
  using Layer::Layer;
  explicit Flatten(int64_t start = 1, int64_t end = -1);
};
class Unflatten : public Layer<Unflatten> {
 public:
  using Layer::Layer;
  Unflatten(int64_t dim, Dims sizes);
};

class ReLU : public Layer<ReLU> {
 public:
  using Layer::Layer;
  ReLU();
};
class ReLU6 : public Layer<ReLU6> {
 public:
  using Layer::Layer;
  ReLU6();
};
class LeakyReLU : public Layer<LeakyReLU> {
 public:
  using Layer::Layer;
  explicit LeakyReLU(double negative_slope = 0.01);
};
class ELU : public Layer<ELU> {
 public:
  using Layer::Layer;
  explicit ELU(double alpha = 1);
};
class SELU : public Layer<SELU> {
 public:
  using Layer::Layer;
  SELU();
};
class CELU : public Layer<CELU> {
 public:
  using Layer::Layer;
  explicit CELU(double alpha = 1);
};
class GELU : public Layer<GELU> {
 public:
  using Layer::Layer;
  explicit GELU(bool by_tanh = false);
};
class SiLU : public Layer<SiLU> {
 public:
  using Layer::Layer;
  SiLU();
};
class Mish : public Layer<Mish> {
 public:
  using Layer::Layer;
  Mish();
};
class Tanh : public Layer<Tanh> {
 public:
  using Layer::Layer;
  Tanh();
};
class Sigmoid : public Layer<Sigmoid> {
 public:
  using Layer::Layer;
  Sigmoid();
};
class Hardtanh : public Layer<Hardtanh> {
 public:
  using Layer::Layer;
  // Throws ValueError unless min_val < max_val.
  explicit Hardtanh(double min_val = -1, double max_val = 1);
};
class Hardsigmoid : public Layer<Hardsigmoid> {
 public:
  using Layer::Layer;
  Hardsigmoid();
};
class Hardswish : public Layer<Hardswish> {
 public:
  using Layer::Layer;
  Hardswish();
};
class Hardshrink : public Layer<Hardshrink> {
 public:
  using Layer::Layer;
  explicit Hardshrink(double lambd = 0.5);
};
class Softshrink : public Layer<Softshrink> {
 public:
  using Layer::Layer;
  explicit Softshrink(double lambd = 0.5);
};
class Tanhshrink : public Layer<Tanhshrink> {
 public:
  using Layer::Layer;
  Tanhshrink();
};
class Softplus : public Layer<Softplus> {
 public:
  using Layer::Layer;
  explicit Softplus(double beta = 1, double threshold = 20);
};
class Softsign : public Layer<Softsign> {
 public:
  using Layer::Layer;
  Softsign();
};
class LogSigmoid : public Layer<LogSigmoid> {
 public:
  using Layer::Layer;
  LogSigmoid();
};
class Threshold : public Layer<Threshold> {
 public:
  using Layer::Layer;
  Threshold(double threshold, double value);
};
class GLU : public Layer<GLU> {
 public:
  using Layer::Layer;
  explicit GLU(int64_t dim = -1);
};
class Softmax : public Layer<Softmax> {
 public:
  using Layer::Layer;
  explicit Softmax(int64_t dim);
};
class Softmin : public Layer<Softmin> {
 public:
  using Layer::Layer;
  explicit Softmin(int64_t dim);
};
class LogSoftmax : public Layer<LogSoftmax> {
 public:
  using Layer::Layer;
  explicit LogSoftmax(int64_t dim);
};
// Softmax over the channels of (N, C, H, W) or (C, H, W). Throws ValueError for other ranks.
class Softmax2d : public Layer<Softmax2d> {
 public:
  using Layer::Layer;
  Softmax2d();
};

// x where positive, else weight * x, with `count` weights (one, or one per channel), initialized to `init`.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t count = 1, double init = 0.25, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "PReLU"; }
  std::string details() const override;
  Tensor weight;

 protected:
  std::shared_ptr<Module> remake() const override;
};

// --- dropout: active in training mode only. Throws ValueError unless 0 <= p <= 1

// Base class; the function determines what is dropped.
class DropoutBase : public Module {
 public:
  using Drop = Tensor (*)(const Tensor&, double p, bool training);
  DropoutBase(const char* name, Drop drop, double p);
  Tensor forward(const Tensor& x) override { return drop_(x, p_, is_training()); }
  std::string name() const override { return name_; }
  std::string details() const override;

 protected:
  const char* name_;
  Drop drop_;
  double p_;
};
template <class D>
class DropoutLayer : public DropoutBase {
 public:
  using DropoutBase::DropoutBase;

 protected:
  std::shared_ptr<Module> remake() const override { return std::make_shared<D>(p_); }
};
// Zeroes each element with probability p and multiplies the others by 1 / (1 - p).
class Dropout : public DropoutLayer<Dropout> {
 public:
  explicit Dropout(double p = 0.5);
};
// Drops whole channels.
class Dropout1d : public DropoutLayer<Dropout1d> {
 public:
  explicit Dropout1d(double p = 0.5);
};
class Dropout2d : public DropoutLayer<Dropout2d> {
 public:
  explicit Dropout2d(double p = 0.5);
};
class Dropout3d : public DropoutLayer<Dropout3d> {
 public:
  explicit Dropout3d(double p = 0.5);
};
// Preserves the mean and variance of a SELU network's activations.
class AlphaDropout : public DropoutLayer<AlphaDropout> {
 public:
  explicit AlphaDropout(double p = 0.5);
};
// AlphaDropout that drops whole channels.
class FeatureAlphaDropout : public DropoutLayer<FeatureAlphaDropout> {
 public:
  explicit FeatureAlphaDropout(double p = 0.5);
};
// Multiplies negative elements by a slope: drawn from [lower, upper] for each in training, else the mean of both.
class RReLU : public Module {
 public:
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3);
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "RReLU"; }
  std::string details() const override;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  double lower_, upper_;
};

}  // namespace naru::nn
