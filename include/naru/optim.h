// Optimizers in C++, as torch.optim has them: lists of parameters in groups with settings of their own, a state, and one step over all of them. Rates
// that change with time: naru/lr_scheduler.h; further optimizers: naru/optim_more.h; averages of parameters: naru/averaged_model.h.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/optim_steps.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::optim {

// Parameters without a gradient are left out of a step. Works on the tensors themselves: a module moved with Module::to
// keeps its optimizer, whose state follows at the next step.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(Optimizer&&);
  Optimizer& operator=(Optimizer&&) = delete;
  // One step, no history recorded.
  virtual void step() = 0;
  // Calls the closure, which computes the loss anew and its gradients, then does one step; returns the loss.
  virtual Tensor step(const std::function<Tensor()>& closure);
  // Forgets the gradients (or sets them to 0).
  void zero_grad(bool set_to_none = true);
  // Of all groups, one after the other.
  const std::vector<Tensor>& parameters() const noexcept { return params_; }

  // --- groups. IndexError for a group that is not there
  size_t groups() const noexcept;
  std::vector<Tensor> group_parameters(size_t group) const;
  double lr(size_t group = 0) const;
  void set_lr(size_t group, double lr);
  void set_lr(double lr);  // of all groups
  // The momentum, or Adam's beta1; none where there is no such setting.
  std::optional<double> momentum(size_t group = 0) const;
  void set_momentum(size_t group, double momentum);
  // The rate that a group had when it was first asked for: what schedules go by.
  double initial_lr(size_t group);
  void set_initial_lr(size_t group, double lr);

  // A setting of a group, by PyTorch's name: a number ("lr"), a switch ("nesterov", 0 or 1), or two numbers ("betas").
  struct Setting {
    enum class Kind : uint8_t { Number, Switch, Pair };
    std::string name;
    Kind kind;
    double value, second = 0;
  };
  // All of a group, "initial_lr" among them where it has been asked for; none but that where the optimizer's options are not naru's.
  std::vector<Setting> group_settings(size_t group) const;

  // What the optimizer remembers, by name: "step", "momentum_buffer.0", "exp_avg.3" ..., and the settings: "group.0.lr", "group.1.betas" ... naru/checkpoint.h
  // has the form in which PyTorch writes it.
  using State = std::vector<std::pair<std::string, Tensor>>;
  State state_dict() const;
  // Copies the state in, and the settings that it has. Throws RuntimeError for names and shapes that do not fit these parameters, ValueError for settings
  // out of range; nothing is changed then.
  void load_state_dict(const State& state);
  // Numbers of a parameter's state beside its tensors, as PyTorch has them: ("mu_product", ...).
  virtual std::vector<std::pair<std::string, double>> numbers(size_t parameter) const;
  // Takes one back from a file.
  virtual void set_number(size_t, const std::string&, double) {}

 protected:
  // Throws ValueError for an empty list, RuntimeError for a tensor that is no leaf.
  explicit Optimizer(std::vector<Tensor> params);
  // The last group's parameters become a new group's.
  void add_parameters(std::vector<Tensor> params);
  // One slot of state: a tensor per parameter, undefined until first used.
  std::vector<Tensor>& add_slot(std::string name);
  // The numbers of the parameters that have a gradient: of all, or of a group.
  std::vector<size_t> with_gradient() const;
  std::vector<size_t> with_gradient(size_t group) const;
  // Undefined ones become zeros; those left behind on another device or of another dtype follow their parameter.
  void prepare_slot(std::vector<Tensor>& slot, const std::vector<size_t>& which);
  void follow_parameters(std::vector<Tensor>& slot, const std::vector<size_t>& which);

  // While it lives complex parameters and their gradients are pairs of real numbers (view_as_real), as which all but a few optimizers update them.
  // Their parts of slots always are; states that are asked for or loaded are complex.
  class AsReal {
   public:
    explicit AsReal(Optimizer& optimizer);
    ~AsReal();
    AsReal(const AsReal&) = delete;

   private:
    Optimizer& optimizer_;
    std::vector<std::pair<size_t, Tensor>> complex_;
  };
  // RuntimeError where a parameter is complex.
  void refuse_complex(const char* name) const;

  // Of what shape a parameter's part of a slot is.
  virtual Dims slot_shape(const std::string&, size_t i) const { return params_[i].sizes(); }
  // How many steps each parameter has made; what was counted elsewhere is to be forgotten, for steps_ has been loaded.
  virtual std::vector<int64_t> steps() const;
  virtual void forget_counts() {}
  // Where a group's settings stand; null where it has none such.
  virtual double* lr_place(size_t) { return nullptr; }
  virtual double* momentum_place(size_t) { return nullptr; }
  // A group's settings without initial_lr; and others in their place, checked alone unless `commit`.
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
  std::vector<std::shared_ptr<Slot>> slots_;  // their addresses stay
  std::vector<size_t> ends_;                  // of the groups, in params_
  std::vector<double> initial_lrs_;           // NaN: the rate that is
};

// A group as it is given: parameters, and settings of their own.
template <class O>
struct Group {
  std::vector<Tensor> params;
  std::optional<O> options = {};  // the optimizer's, unless given
};

// Where the settings of options stand.
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
// What the places have no name for is left alone.
void write_settings(const SettingPlaces& places, const std::vector<Optimizer::Setting>& settings);

// Throws where there is no such group.
void* settings_in(const std::vector<std::shared_ptr<void>>& groups, size_t group);

// Base of optimizers with settings `O`.
template <class O>
class Grouped : public Optimizer {
 public:
  using Optimizer::step;
  O& group_options(size_t group) { return at(group); }
  // ValueError for settings out of range and for parameters that are there already.
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
  // Of a list of groups: the first one's parameters and settings, and the others added.
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
  std::vector<std::shared_ptr<void>> settings_;  // an O each; their addresses stay

 public:
  O& options;  // of the first group
};

// v = momentum * v + (1 - dampening) * g; p -= lr * v (nesterov: lr * (g + momentum * v)); g includes weight_decay * p.
// The first v is g.
class SGD : public Grouped<SgdOptions> {
 public:
  // ValueError for negative values, and for nesterov without momentum or with dampening.
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
  // ValueError for values out of range.
  Adam(std::vector<Tensor> params, AdamOptions options = {});
  template <std::same_as<Group<AdamOptions>> G>
  explicit Adam(const std::vector<G>& groups, AdamOptions o = {}) : Adam(first_of(groups), options_of(groups, o)) {
    add_rest(groups, o);
  }
  Adam(std::vector<Tensor> params, double lr);
  // Throws RuntimeError in a capture (naru/graph.h) without options.capturable, or before the first step.
  void step() override;
  using Optimizer::step;

 protected:
  void forget_counts() override;

 private:
  std::vector<int64_t> steps() const override;
  void step_group(const std::vector<size_t>& which, const AdamOptions& o);
  void step_on_device(const std::vector<size_t>& which, const AdamOptions& o);

  std::vector<Tensor> counts_;  // capturable: the steps of each parameter, shared by those that began together
  std::vector<Tensor>&exp_avg_, &exp_avg_sq_, &max_exp_avg_sq_;
};

// Adam whose weight decay shrinks the parameters directly (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> params, AdamOptions o);
  template <std::same_as<Group<AdamOptions>> G>
  AdamW(const std::vector<G>& groups, AdamOptions o) : Adam(first_of(groups), decoupled(options_of(groups, o))) {
    for (size_t i = 1; i < groups.size(); ++i) add_param_group(groups[i].params, decoupled(groups[i].options.value_or(o)));
  }
  AdamW(std::vector<Tensor> params, double lr = 1e-3);

 private:
  // Whatever was loaded: an AdamW is one.
  void forget_counts() override;
  static AdamOptions decoupled(AdamOptions o);
};

// --- parameter by parameter (naru/optim_steps.h says what each computes). ValueError for settings out of range

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
// Adam of sparse gradients, which moves only the rows that they have coordinates for. RuntimeError for dense ones.
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

}  // namespace naru::optim
