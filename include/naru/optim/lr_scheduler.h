// Learning rate schedules, after torch.optim.lr_scheduler: step(), called after each epoch (or batch), sets the rates of the optimizer's
// groups. Several schedules may share an optimizer, which must outlive them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "naru/optim.h"
#include "naru/standard.h"

namespace naru::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  // Advances by one epoch.
  virtual void step();
  // Jumps to an epoch, by its closed form if there is one. Some schedules accept fractions of epochs; ReduceLROnPlateau expects the metric
  // instead.
  virtual void step(double epoch);
  // The rates set last, one per group.
  const std::vector<double>& get_last_lr() const noexcept { return last_lr_; }
  int64_t last_epoch() const noexcept { return last_epoch_; }
  Optimizer& optimizer() const noexcept { return optimizer_; }

  // The schedule's internal counters by name, without its settings.
  using State = std::map<std::string, double>;
  virtual State state_dict() const;
  // Throws ValueError if a value is missing.
  virtual void load_state_dict(const State& state);

 protected:
  using Rates = std::vector<double>;
  explicit LRScheduler(Optimizer& optimizer);
  // To be called at the end of a subclass's constructor: sets the rates of epoch 0.
  void begin();
  // The rates of last_epoch(), computed from those of the previous epoch.
  virtual Rates get_lr() = 0;
  // The same computed from the epoch alone; get_lr() if there is no closed form.
  virtual Rates closed_form();
  Rates rates() const;
  void set_rates(const Rates& rates);
  // f(rate, base rate) of each group.
  template <class F>
  Rates each(F f) const {
    Rates list = rates();
    for (size_t i = 0; i < list.size(); ++i) list[i] = f(list[i], base_[i]);
    return list;
  }

  Optimizer& optimizer_;
  Rates base_, last_lr_;
  int64_t last_epoch_ = -1, steps_ = 0;

 private:
  friend class SequentialLR;
};

// A value for all groups, or one per group (ValueError for another count).
struct PerGroup {
  std::vector<double> values;
  PerGroup(double one);
  PerGroup(int one);
  PerGroup(std::vector<double> list);
  PerGroup(std::initializer_list<double> list);
  std::vector<double> of(const Optimizer& optimizer, const char* name) const;
};

// initial rate · f(epoch), with one function for all groups or one per group.
class LambdaLR : public LRScheduler {
 public:
  using F = std::function<double(int64_t)>;
  LambdaLR(Optimizer& optimizer, F f);
  LambdaLR(Optimizer& optimizer, std::vector<F> each);

 protected:
  LambdaLR(Optimizer& optimizer, std::vector<F> each, bool now);
  Rates get_lr() override;
  std::vector<F> f_;
};
// Multiplies the previous rate by f(epoch).
class MultiplicativeLR : public LambdaLR {
 public:
  MultiplicativeLR(Optimizer& optimizer, F f);

 protected:
  Rates get_lr() override;
};
// Multiplies the rate by gamma every step_size epochs.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  int64_t step_size_;
  double gamma_;
};
// Multiplies the rate by gamma at each of the epochs `milestones`.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};
// initial rate · factor before epoch total_iters, then the initial rate. Throws ValueError unless 0 <= factor <= 1.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  double factor_;
  int64_t total_;
};
// The initial rate times a factor that changes linearly from start_factor to end_factor in total_iters epochs. Throws ValueError unless 0 <
// start <= 1 and 0 <= end <= 1.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  double start_, end_;
  int64_t total_;
};
// Multiplies the rate by gamma every epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  double gamma_;
};
// initial rate · (1 - epoch / total_iters) ^ power; 0 from epoch total_iters.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  int64_t total_;
  double power_;
};
// Anneals along a cosine from the initial rate to eta_min in t_max epochs, and back up.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  int64_t t_max_;
  double eta_min_;
};
// Cosine annealing that restarts after t_0 epochs, then after t_0 · t_mult, and so on. Throws ValueError unless both are at least 1.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0);
  void step() override;
  // Jumps to an epoch, which may be fractional (epoch + batch / batches). Throws ValueError if it is negative.
  void step(double epoch) override;
  State state_dict() const override;
  void load_state_dict(const State& state) override;

 protected:
  Rates get_lr() override;

 private:
  void set();
  int64_t t_0_, t_i_, t_mult_;
  double eta_min_, t_cur_ = -1;
};

struct OneCycleOptions {
  double pct_start = 0.3;      // fraction of the steps in which the rate increases
  bool linear = false;         // linear instead of cosine annealing
  bool cycle_momentum = true;  // move momentum (or beta1) in the opposite direction
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;  // decrease for as long as the increase, then anneal to the end rate
};
// Increases from max_lr / div_factor to max_lr, then decreases to the start rate / final_div_factor; one step per batch. Throws ValueError
// for settings out of range, and for more steps than total_steps.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const PerGroup& max_lr, int64_t total_steps, OneCycleOptions options = {});

 protected:
  Rates get_lr() override;

 private:
  struct Phase {
    double end;
    std::vector<double> from, to;
    double momentum_from, momentum_to;
  };
  int64_t total_;
  OneCycleOptions o_;
  std::vector<Phase> phases_;
};

struct CyclicOptions {
  double step_size_up = 2000;
  std::optional<double> step_size_down = {};  // default: step_size_up
  std::string mode = "triangular";            // "triangular2" halves the amplitude each cycle, "exp_range" decays it by gamma each step
  double gamma = 1;
  std::function<double(double)> scale_fn = nullptr;  // factor of the amplitude, as a function of the cycle or step number
  bool scale_by_cycle = true;
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;
};
// Cycles between base_lr and max_lr: up in step_size_up steps, down in step_size_down; one step per batch. Throws ValueError for another
// mode.
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const PerGroup& base_lr, const PerGroup& max_lr, CyclicOptions options = {});

 protected:
  Rates get_lr() override;

 private:
  CyclicOptions o_;
  std::vector<double> low_, high_;
  double total_, ratio_;
};

// Runs schedules one after the other, switching at the epochs `milestones`. Throws ValueError unless there is one milestone fewer than
// schedules and all schedules have this optimizer.
class SequentialLR : public LRScheduler {
 public:
  using Schedules = std::vector<std::shared_ptr<LRScheduler>>;
  SequentialLR(Optimizer& optimizer, Schedules schedulers, std::vector<int64_t> milestones);
  using LRScheduler::step;
  void step() override;
  State state_dict() const override;
  void load_state_dict(const State& state) override;

 protected:
  Rates get_lr() override;

 private:
  Schedules schedulers_;
  std::vector<int64_t> milestones_;
};
// Applies several schedules at each step.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(SequentialLR::Schedules schedulers);
  using LRScheduler::step;
  void step() override;
  State state_dict() const override;
  void load_state_dict(const State& state) override;

 protected:
  Rates get_lr() override;

 private:
  SequentialLR::Schedules schedulers_;
};

struct PlateauOptions {
  bool maximize = false;  // the metric should increase (Python's mode="max")
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;  // least change that counts as an improvement,
  bool absolute = false;    // absolute or relative
  int64_t cooldown = 0;     // epochs to wait after a reduction
  std::vector<double> min_lr = {0};
  double eps = 1e-8;  // smaller changes are ignored
};
// Multiplies the rate by `factor` when a metric has not improved for more than `patience` epochs. Throws ValueError for a factor of 1 or
// more.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options = {});
  void step() override;  // throws RuntimeError: needs the metric
  void step(double measure) override;
  State state_dict() const override;
  void load_state_dict(const State& state) override;

 protected:
  Rates get_lr() override;

 private:
  bool is_better(double measure) const;
  PlateauOptions o_;
  std::vector<double> min_lrs_;
  double best_;
  int64_t bad_ = 0, cooling_ = 0;
};

}  // namespace naru::optim
