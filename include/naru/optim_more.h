// Optimizers beside those of naru/optim.h, which has their base. What each computes: naru/optim_steps.h. ValueError for settings out of range.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "naru/optim.h"

namespace naru::optim {

class RAdam : public Grouped<RadamOptions> {
 public:
  explicit RAdam(std::vector<Tensor> params, RadamOptions options = {});
  template <std::same_as<Group<RadamOptions>> G>
  explicit RAdam(const std::vector<G>& groups, RadamOptions o = {}) : RAdam(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&exp_avg_, &exp_avg_sq_;
};

class Rprop : public Grouped<RpropOptions> {
 public:
  explicit Rprop(std::vector<Tensor> params, RpropOptions options = {});
  template <std::same_as<Group<RpropOptions>> G>
  explicit Rprop(const std::vector<G>& groups, RpropOptions o = {}) : Rprop(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&prev_, &step_size_;
};

// Averaged stochastic gradient descent (Polyak and Juditsky, 1992): average(i) is the mean of a parameter.
class ASGD : public Grouped<AsgdOptions> {
 public:
  explicit ASGD(std::vector<Tensor> params, AsgdOptions options = {});
  template <std::same_as<Group<AsgdOptions>> G>
  explicit ASGD(const std::vector<G>& groups, AsgdOptions o = {}) : ASGD(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;
  // Undefined before the first step.
  Tensor average(size_t i) const { return ax_.at(i); }
  std::vector<std::pair<std::string, double>> numbers(size_t i) const override;
  void set_number(size_t i, const std::string& name, double value) override;

 private:
  void forget_counts() override;
  // Of the step that comes.
  struct Rates {
    double eta, mu;
  };
  Rates rates_of(size_t i, const AsgdOptions& o) const;

  std::vector<Tensor>& ax_;
  std::vector<std::optional<Rates>> rates_;  // none before the first step
};

class Adafactor : public Grouped<AdafactorOptions> {
 public:
  explicit Adafactor(std::vector<Tensor> params, AdafactorOptions options = {});
  template <std::same_as<Group<AdafactorOptions>> G>
  explicit Adafactor(const std::vector<G>& groups, AdafactorOptions o = {}) : Adafactor(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  Dims slot_shape(const std::string& slot, size_t i) const override;

  std::vector<Tensor>&row_var_, &col_var_, &variance_;
};

// Of matrices only (ValueError).
class Muon : public Grouped<MuonOptions> {
 public:
  explicit Muon(std::vector<Tensor> params, MuonOptions options = {});
  template <std::same_as<Group<MuonOptions>> G>
  explicit Muon(const std::vector<G>& groups, MuonOptions o = {}) : Muon(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>& momentum_buffer_;
};

struct LbfgsOptions {
  double lr = 1;
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = {};  // max_iter * 5 / 4
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int64_t history_size = 100;
  bool strong_wolfe = false;  // search along each direction; else steps are of length lr
  bool maximize = false;
};
// Quasi-Newton steps (Liu and Nocedal, 1989) over all parameters as one vector: a step is up to max_iter iterations. Its state is its own: state_dict() has none.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params, LbfgsOptions options = {});
  // Needs the closure, which computes the loss and its gradients. RuntimeError.
  void step() override;
  Tensor step(const std::function<Tensor()>& closure) override;
  LbfgsOptions options;

 private:
  double* lr_place(size_t) override { return &options.lr; }
  Tensor gradient() const;
  void move(double t, const Tensor& d);
  std::pair<double, Tensor> evaluate(const std::function<Tensor()>& closure);
  LineSearch search(const std::function<Tensor()>& closure, double t, double loss, const Tensor& grad, double slope, int64_t most);

  LbfgsHistory history_;
  int64_t iterations_ = 0;
  Tensor direction_, last_grad_;
  double t_ = 0;
};

}  // namespace naru::optim
