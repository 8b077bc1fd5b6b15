// Optimizers in C++, after torch.optim: parameter groups with their own settings, a state, and one step over all of them. Learning rate
// schedules: naru/optim/lr_scheduler.h; averaged parameters: naru/optim/averaged_model.h.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/optim/steps.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::optim {

// A step skips parameters without a gradient. Updates parameters in place. If Module::to moves a module, its optimizer stays valid, and the
// state follows at the next step.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(Optimizer&&);
  Optimizer& operator=(Optimizer&&) = delete;
  // Does one step, without recording history.
  virtual void step() = 0;
  // Calls the closure, which recomputes the loss and its gradients, then does one step. Returns the loss.
  virtual Tensor step(const std::function<Tensor()>& closure);
  // Clears the gradients, or sets them to 0.
  void zero_grad(bool set_to_none = true);
  // The parameters of all groups, in order.
  const std::vector<Tensor>& parameters() const noexcept { return params_; }

  // --- groups. These throw IndexError for a group that doesn't exist
  size_t groups() const noexcept;
  std::vector<Tensor> group_parameters(size_t group) const;
  double lr(size_t group = 0) const;
  void set_lr(size_t group, double lr);
  void set_lr(double lr);  // for all groups
  // The momentum, or Adam's beta1; empty if the optimizer has neither.
  std::optional<double> momentum(size_t group = 0) const;
  void set_momentum(size_t group, double momentum);
  // The learning rate when the scheduler first asked for it. Schedules are relative to it.
  double initial_lr(size_t group);
  void set_initial_lr(size_t group, double lr);

  // A setting of a group, by PyTorch's name: a number ("lr"), a flag ("nesterov", 0 or 1), or a pair of numbers ("betas").
  struct Setting {
    enum class Kind : uint8_t { Number, Switch, Pair };
    std::string name;
    Kind kind;
    double value, second = 0;
  };
  // All settings of a group, with "initial_lr" once it has been set. User-defined optimizers whose options naru does not know have only
  // that.
  std::vector<Setting> group_settings(size_t group) const;

  // The state by name: "step", "momentum_buffer.0", "exp_avg.3" ..., and the settings: "group.0.lr", "group.1.betas" ...
  // naru/io/checkpoint.h converts it to PyTorch's format.
  using State = std::vector<std::pair<std::string, Tensor>>;
  State state_dict() const;
  // Copies the state and the settings that it contains. Throws RuntimeError if names or shapes do not fit the parameters, ValueError for
  // settings out of range; then nothing is changed.
  void load_state_dict(const State& state);
  // Scalars in a parameter's state besides its tensors, with PyTorch's names: ("mu_product", ...).
  virtual std::vector<std::pair<std::string, double>> numbers(size_t parameter) const;
  // Restores one of them when a file is loaded.
  virtual void set_number(size_t, const std::string&, double) {}

 protected:
  // Throws ValueError for an empty list, RuntimeError for a tensor that is not a leaf.
  explicit Optimizer(std::vector<Tensor> params);
  // Appends a group with these parameters.
  void add_parameters(std::vector<Tensor> params);
  // Adds a state slot: one tensor per parameter, undefined until first used.
  std::vector<Tensor>& add_slot(std::string name);
  // The indices of parameters that have a gradient: all of them, or those of a group.
  std::vector<size_t> with_gradient() const;
  std::vector<size_t> with_gradient(size_t group) const;
  // prepare_slot creates undefined tensors as zeros. Both move tensors to their parameter's device and dtype if those have changed.
  void prepare_slot(std::vector<Tensor>& slot, const std::vector<size_t>& which);
  void follow_parameters(std::vector<Tensor>& slot, const std::vector<size_t>& which);

  // Within its scope, complex parameters and their gradients are replaced by their view_as_real; most optimizers update them so. The slots
  // always store the real form; state_dict and load_state_dict use the complex form.
  class AsReal {
   public:
    explicit AsReal(Optimizer& optimizer);
    ~AsReal();
    AsReal(const AsReal&) = delete;

   private:
    Optimizer& optimizer_;
    std::vector<std::pair<size_t, Tensor>> complex_;
  };
  // Throws RuntimeError if a parameter is complex.
  void refuse_complex(const char* name) const;

  // The shape of a parameter's tensor in a slot.
  virtual Dims slot_shape(const std::string&, size_t i) const { return params_[i].sizes(); }
  // The number of steps each parameter has made. forget_counts() drops counts kept elsewhere, because steps_ has been loaded.
  virtual std::vector<int64_t> steps() const;
  virtual void forget_counts() {}
  // Pointers to a group's settings; null if it has none.
  virtual double* lr_place(size_t) { return nullptr; }
  virtual double* momentum_place(size_t) { return nullptr; }
  // A group's settings without initial_lr. set_settings checks settings, and stores them if `commit`.
  virtual std::vector<Setting> settings_of(size_t group) const;
  virtual void set_settings(size_t, const std::vector<Setting>&, bool) {}

  std::vector<Tensor> params_;
  std::vector<int64_t> steps_;  // per parameter

 private:
  struct Slot {
    std::string name;
    std::vector<Tensor> tensors;
  };
  void check_parameters(size_t from) const;
  void check_group(size_t group) const;
  std::vector<size_t> with_gradient(size_t begin, size_t end) const;
  std::vector<std::shared_ptr<Slot>> slots_;  // shared_ptr: the addresses are stable
  std::vector<size_t> ends_;                  // end index of each group in params_
  std::vector<double> initial_lrs_;           // NaN: not set, use the current rate
};

// A parameter group as a constructor argument: parameters and their settings.
template <class O>
struct Group {
  std::vector<Tensor> params;
  std::optional<O> options = {};  // default: the optimizer's options
};

// Maps a setting's name to its members in an options struct.
struct SettingPlace {
  const char* name;
  bool* on = nullptr;
  double *value = nullptr, *second = nullptr;
  SettingPlace(const char* n, bool& b) : name(n), on(&b) {}
  SettingPlace(const char* n, double& v) : name(n), value(&v) {}
  SettingPlace(const char* n, double& v, double& w) : name(n), value(&v), second(&w) {}
};
using SettingPlaces = std::vector<SettingPlace>;
SettingPlaces places_of(SgdOptions& o);
SettingPlaces places_of(AdamOptions& o);
SettingPlaces places_of(RmspropOptions& o);
SettingPlaces places_of(AdagradOptions& o);
SettingPlaces places_of(AdadeltaOptions& o);
SettingPlaces places_of(SparseAdamOptions& o);
SettingPlaces places_of(AdamaxOptions& o);
SettingPlaces places_of(NadamOptions& o);
SettingPlaces places_of(RadamOptions& o);
SettingPlaces places_of(RpropOptions& o);
SettingPlaces places_of(AsgdOptions& o);
SettingPlaces places_of(AdafactorOptions& o);
SettingPlaces places_of(MuonOptions& o);
std::vector<Optimizer::Setting> read_settings(const SettingPlaces& places);
// Ignores settings whose name is not in `places`.
void write_settings(const SettingPlaces& places, const std::vector<Optimizer::Setting>& settings);

// Throws std::out_of_range if the group does not exist.
void* settings_in(const std::vector<std::shared_ptr<void>>& groups, size_t group);

// Base of optimizers with settings `O`.
template <class O>
class Grouped : public Optimizer {
 public:
  using Optimizer::step;
  O& group_options(size_t group) { return at(group); }
  // Throws ValueError for settings out of range and for parameters that are already in a group.
  void add_param_group(std::vector<Tensor> params, std::optional<O> own = {}) {
    const O given = own.value_or(options);
    check_(given);
    add_parameters(std::move(params));
    settings_.push_back(std::make_shared<O>(given));
  }

 protected:
  using Check = void (*)(const O&);
  Grouped(std::vector<Tensor> params, const O& o, Check check)
      : Optimizer(std::move(params)), check_(check), settings_{std::make_shared<O>(o)}, options(at(0)) {
    check_(o);
  }
  // For construction from a list of groups: the first group's parameters and options; add_rest adds the others.
  static std::vector<Tensor> first_of(const std::vector<Group<O>>& groups) {
    return groups.empty() ? std::vector<Tensor>() : groups[0].params;
  }
  static O options_of(const std::vector<Group<O>>& groups, const O& o) { return groups.empty() ? o : groups[0].options.value_or(o); }
  void add_rest(const std::vector<Group<O>>& groups, const O& o) {
    for (size_t i = 1; i < groups.size(); ++i) add_param_group(groups[i].params, groups[i].options.value_or(o));
  }
  double* lr_place(size_t group) override { return &at(group).lr; }
  double* momentum_place(size_t group) override {
    if constexpr (requires(O & o) { o.momentum; })
      return &at(group).momentum;
    else if constexpr (requires(O & o) { o.beta1; })
      return &at(group).beta1;
    else
      return nullptr;
  }
  std::vector<Setting> settings_of(size_t group) const override {
    if constexpr (requires(O & o) { places_of(o); })
      return read_settings(places_of(at(group)));
    else
      return {};
  }
  void set_settings(size_t group, const std::vector<Setting>& list, bool commit) override {
    if constexpr (requires(O & o) { places_of(o); }) {
      O changed = at(group);
      write_settings(places_of(changed), list);
      check_(changed);
      if (commit) at(group) = changed;
    }
  }

 private:
  O& at(size_t group) const { return *static_cast<O*>(settings_in(settings_, group)); }
  Check check_;
  std::vector<std::shared_ptr<void>> settings_;  // one O per group; the addresses are stable

 public:
  O& options;  // the first group's
};

// v = momentum * v + (1 - dampening) * g; p -= lr * v (nesterov: lr * (g + momentum * v)); g includes weight_decay * p. The first v is g.
class SGD : public Grouped<SgdOptions> {
 public:
  // Throws ValueError for negative values, and for nesterov without momentum or with dampening.
  SGD(std::vector<Tensor> params, SgdOptions options);
  template <std::same_as<Group<SgdOptions>> G>
  SGD(const std::vector<G>& groups, SgdOptions o) : SGD(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  SGD(std::vector<Tensor> params, double lr);
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>& momenta_;
};

// Adam (Kingma and Ba, 2015).
class Adam : public Grouped<AdamOptions> {
 public:
  // Throws ValueError for values out of range.
  Adam(std::vector<Tensor> params, AdamOptions options = {});
  template <std::same_as<Group<AdamOptions>> G>
  explicit Adam(const std::vector<G>& groups, AdamOptions o = {}) : Adam(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  Adam(std::vector<Tensor> params, double lr);
  // Throws RuntimeError in a capture (naru/device/graph.h) unless options.capturable is set and one step was made before the capture.
  void step() override;
  using Optimizer::step;

 protected:
  void forget_counts() override;

 private:
  std::vector<int64_t> steps() const override;
  void step_group(const std::vector<size_t>& which, const AdamOptions& o);
  void step_on_device(const std::vector<size_t>& which, const AdamOptions& o);

  std::vector<Tensor> counts_;  // capturable: step counts; parameters that started together share one
  std::vector<Tensor>&exp_avg_, &exp_avg_sq_, &max_exp_avg_sq_;
};

// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> params, AdamOptions o);
  template <std::same_as<Group<AdamOptions>> G>
  AdamW(const std::vector<G>& groups, AdamOptions o) : Adam(first_of(groups), decoupled(options_of(groups, o))) {
    for (size_t i = 1; i < groups.size(); ++i) add_param_group(groups[i].params, decoupled(groups[i].options.value_or(o)));
  }
  AdamW(std::vector<Tensor> params, double lr = 1e-3);

 private:
  // Restores `decoupled` after settings were loaded.
  void forget_counts() override;
  static AdamOptions decoupled(AdamOptions o);
};

// --- updates parameter by parameter (naru/optim/steps.h has the formulas). Constructors throw ValueError for settings out of range

class RMSprop : public Grouped<RmspropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> params, RmspropOptions options = {});
  template <std::same_as<Group<RmspropOptions>> G>
  explicit RMSprop(const std::vector<G>& groups, RmspropOptions o = {}) : RMSprop(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&square_avg_, &momentum_, &grad_avg_;
};
class Adagrad : public Grouped<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions options = {});
  template <std::same_as<Group<AdagradOptions>> G>
  explicit Adagrad(const std::vector<G>& groups, AdagradOptions o = {}) : Adagrad(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>& sum_;
};
// Adam for sparse gradients: updates only the rows for which they have indices. Throws RuntimeError for dense gradients.
class SparseAdam : public Grouped<SparseAdamOptions> {
 public:
  explicit SparseAdam(std::vector<Tensor> params, SparseAdamOptions options = {});
  template <std::same_as<Group<SparseAdamOptions>> G>
  explicit SparseAdam(const std::vector<G>& groups, SparseAdamOptions o = {}) : SparseAdam(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&exp_avg_, &exp_avg_sq_;
};
class Adadelta : public Grouped<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Tensor> params, AdadeltaOptions options = {});
  template <std::same_as<Group<AdadeltaOptions>> G>
  explicit Adadelta(const std::vector<G>& groups, AdadeltaOptions o = {}) : Adadelta(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&square_avg_, &acc_delta_;
};
class Adamax : public Grouped<AdamaxOptions> {
 public:
  explicit Adamax(std::vector<Tensor> params, AdamaxOptions options = {});
  template <std::same_as<Group<AdamaxOptions>> G>
  explicit Adamax(const std::vector<G>& groups, AdamaxOptions o = {}) : Adamax(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;

 private:
  std::vector<Tensor>&exp_avg_, &exp_inf_;
};
class NAdam : public Grouped<NadamOptions> {
 public:
  explicit NAdam(std::vector<Tensor> params, NadamOptions options = {});
  template <std::same_as<Group<NadamOptions>> G>
  explicit NAdam(const std::vector<G>& groups, NadamOptions o = {}) : NAdam(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  void step() override;
  using Optimizer::step;
  std::vector<std::pair<std::string, double>> numbers(size_t i) const override;
  void set_number(size_t i, const std::string& name, double value) override;

 private:
  void forget_counts() override;

  std::vector<Tensor>&exp_avg_, &exp_avg_sq_;
  std::vector<double> mu_products_;
};

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

// Averaged stochastic gradient descent (Polyak and Juditsky, 1992): average(i) is the average of parameter i.
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
  // The rates for the next step.
  struct Rates {
    double eta, mu;
  };
  Rates rates_of(size_t i, const AsgdOptions& o) const;

  std::vector<Tensor>& ax_;
  std::vector<std::optional<Rates>> rates_;  // empty before the first step
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

// For matrices only (ValueError otherwise).
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
  std::optional<int64_t> max_eval = {};  // default: max_iter * 5 / 4
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int64_t history_size = 100;
  bool strong_wolfe = false;  // line search for the step length; else it is lr
  bool maximize = false;
};
// L-BFGS (Liu and Nocedal, 1989) over all parameters as one vector; a step makes up to max_iter iterations. state_dict() does not contain
// its state.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params, LbfgsOptions options = {});
  // Throws RuntimeError: L-BFGS needs the closure, which computes the loss and its gradients.
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
