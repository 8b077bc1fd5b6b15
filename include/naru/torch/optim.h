// libtorch's optimizers, options and parameter groups. Included by naru/torch.h.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/torch/tensor.h"

namespace torch::optim {

using naru::optim::LRScheduler;
using naru::optim::Optimizer;
using naru::optim::ReduceLROnPlateau;
using naru::optim::StepLR;

// Options common to all optimizers.
class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};

// Owns settings `O`, or refers to those of a parameter group. Each setting has a setter, which returns the options, and a getter without
// arguments.
template <class D, class O>
class OptionsOf : public OptimizerOptions {
 public:
  using Settings = O;
  OptionsOf(O own) : own_(std::move(own)) {}
  explicit OptionsOf(O* of_a_group) : at_(of_a_group) {}
  OptionsOf(const OptionsOf& o) : own_(o.settings()) {}
  OptionsOf& operator=(const OptionsOf& o) {
    settings() = o.settings();
    return *this;
  }
  O& settings() { return at_ ? *at_ : own_; }
  const O& settings() const { return at_ ? *at_ : own_; }
  double get_lr() const override { return settings().lr; }
  void set_lr(double v) override { settings().lr = v; }
  double lr() const { return settings().lr; }
  D& lr(double v) { return set(&O::lr, v); }
  double weight_decay() const { return settings().weight_decay; }
  D& weight_decay(double v) { return set(&O::weight_decay, v); }

 protected:
  template <class T>
  D& set(T O::*which, T v) {
    settings().*which = v;
    return static_cast<D&>(*this);
  }

 private:
  O own_{};
  O* at_ = nullptr;
};

struct SGDOptions : OptionsOf<SGDOptions, naru::SgdOptions> {
  SGDOptions(double rate) : OptionsOf(naru::SgdOptions{.lr = rate}) {}
  using OptionsOf::OptionsOf;
  double momentum() const { return settings().momentum; }
  SGDOptions& momentum(double v) { return set(&Settings::momentum, v); }
  SGDOptions& dampening(double v) { return set(&Settings::dampening, v); }
  SGDOptions& nesterov(bool v) { return set(&Settings::nesterov, v); }
};
template <class D>
struct AdamOptionsOf : OptionsOf<D, naru::AdamOptions> {
  using OptionsOf<D, naru::AdamOptions>::OptionsOf;
  std::tuple<double, double> betas() const { return {this->settings().beta1, this->settings().beta2}; }
  D& betas(std::tuple<double, double> v) {
    this->settings().beta1 = std::get<0>(v), this->settings().beta2 = std::get<1>(v);
    return static_cast<D&>(*this);
  }
  D& eps(double v) { return this->set(&naru::AdamOptions::eps, v); }
  D& amsgrad(bool v) { return this->set(&naru::AdamOptions::amsgrad, v); }
};
struct AdamOptions : AdamOptionsOf<AdamOptions> {
  AdamOptions(double rate = 1e-3) : AdamOptionsOf(naru::AdamOptions{.lr = rate}) {}
  using AdamOptionsOf::AdamOptionsOf;
};
struct AdamWOptions : AdamOptionsOf<AdamWOptions> {
  AdamWOptions(double rate = 1e-3) : AdamOptionsOf(naru::AdamOptions{.lr = rate, .weight_decay = 1e-2, .decoupled = true}) {}
  using AdamOptionsOf::AdamOptionsOf;
};
struct RMSpropOptions : OptionsOf<RMSpropOptions, naru::optim::RmspropOptions> {
  RMSpropOptions(double rate = 1e-2) : OptionsOf(naru::optim::RmspropOptions{.lr = rate}) {}
  using OptionsOf::OptionsOf;
  RMSpropOptions& alpha(double v) { return set(&Settings::alpha, v); }
  RMSpropOptions& eps(double v) { return set(&Settings::eps, v); }
  RMSpropOptions& momentum(double v) { return set(&Settings::momentum, v); }
  RMSpropOptions& centered(bool v) { return set(&Settings::centered, v); }
};
struct AdagradOptions : OptionsOf<AdagradOptions, naru::optim::AdagradOptions> {
  AdagradOptions(double rate = 1e-2) : OptionsOf(naru::optim::AdagradOptions{.lr = rate}) {}
  using OptionsOf::OptionsOf;
  AdagradOptions& lr_decay(double v) { return set(&Settings::lr_decay, v); }
  AdagradOptions& eps(double v) { return set(&Settings::eps, v); }
};

// Parameters and their options: an optimizer's constructor argument, and an element of param_groups(), whose options refer to the
// optimizer's.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  const std::vector<Tensor>& params() const { return params_; }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() const { return *options_; }

 private:
  std::vector<Tensor> params_;
  std::shared_ptr<OptimizerOptions> options_;
};

// naru's optimizer `Base`, constructed from libtorch's options.
template <class Base, class Options>
class OptimizerOf : public Base {
 public:
  OptimizerOf(std::vector<Tensor> params, const Options& o) : Base(std::move(params), o.settings()) {}
  OptimizerOf(const std::vector<OptimizerParamGroup>& groups, const Options& o) : Base(of_naru(groups, o), o.settings()) {}
  // To set a group's rate: static_cast<AdamOptions&>(group.options()).lr(1e-4).
  std::vector<OptimizerParamGroup>& param_groups() {
    groups_.clear();
    for (size_t i = 0; i < this->groups(); ++i)
      groups_.emplace_back(this->group_parameters(i), std::make_unique<Options>(&this->group_options(i)));
    return groups_;
  }
  void add_param_group(const OptimizerParamGroup& g) {
    if (g.has_options())
      Base::add_param_group(g.params(), static_cast<Options&>(g.options()).settings());
    else
      Base::add_param_group(g.params());
  }

 private:
  using Group = naru::optim::Group<typename Options::Settings>;
  static std::vector<Group> of_naru(const std::vector<OptimizerParamGroup>& groups, const Options& o) {
    std::vector<Group> list;
    for (const OptimizerParamGroup& g : groups)
      list.push_back({g.params(), g.has_options() ? static_cast<Options&>(g.options()).settings() : o.settings()});
    return list;
  }
  std::vector<OptimizerParamGroup> groups_;
};

struct SGD : OptimizerOf<naru::optim::SGD, SGDOptions> {
  using OptimizerOf::OptimizerOf;
};
struct Adam : OptimizerOf<naru::optim::Adam, AdamOptions> {
  using OptimizerOf::OptimizerOf;
  explicit Adam(std::vector<Tensor> params) : OptimizerOf(std::move(params), AdamOptions()) {}
};
struct AdamW : OptimizerOf<naru::optim::AdamW, AdamWOptions> {
  using OptimizerOf::OptimizerOf;
  explicit AdamW(std::vector<Tensor> params) : OptimizerOf(std::move(params), AdamWOptions()) {}
};
struct RMSprop : OptimizerOf<naru::optim::RMSprop, RMSpropOptions> {
  using OptimizerOf::OptimizerOf;
  explicit RMSprop(std::vector<Tensor> params) : OptimizerOf(std::move(params), RMSpropOptions()) {}
};
struct Adagrad : OptimizerOf<naru::optim::Adagrad, AdagradOptions> {
  using OptimizerOf::OptimizerOf;
  explicit Adagrad(std::vector<Tensor> params) : OptimizerOf(std::move(params), AdagradOptions()) {}
};

}  // namespace torch::optim
