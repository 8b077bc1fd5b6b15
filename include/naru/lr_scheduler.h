// Learning rates that change with time, as torch.optim.lr_scheduler has them: step() after each epoch (or batch) sets the rates of the optimizer's groups.
// Several schedules may share an optimizer, which must outlive them.
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
  // One epoch on.
  virtual void step();
  // To an epoch: by the formula for it, where there is one. A few schedules take fractions of epochs here, and a plateau a measure.
  virtual void step(double epoch);
  // The rates set last, one for each group.
  const std::vector<double>& get_last_lr() const noexcept { return last_lr_; }
  int64_t last_epoch() const noexcept { return last_epoch_; }
  Optimizer& optimizer() const noexcept { return optimizer_; }

  // The schedule's own numbers, by name; settings are not among them.
  using State = std::map<std::string, double>;
  virtual State state_dict() const;
  // ValueError for a number that is missing.
  virtual void load_state_dict(const State& state);

 protected:
  using Rates = std::vector<double>;
  explicit LRScheduler(Optimizer& optimizer);
  // What a subclass's constructor does last: the rates of epoch 0.
  void begin();
  // The rates of last_epoch(), from those of the epoch before.
  virtual Rates get_lr() = 0;
  // The same from the epoch alone; get_lr() where there is no such formula.
  virtual Rates closed_form();
  Rates rates() const;
  void set_rates(const Rates& rates);
  // f of each rate and its base.
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

// A number for all groups, or one for each (ValueError for another count).
struct PerGroup {
  std::vector<double> values;
  PerGroup(double one);
  PerGroup(int one);
  PerGroup(std::vector<double> list);
  PerGroup(std::initializer_list<double> list);
  std::vector<double> of(const Optimizer& optimizer, const char* name) const;
};

// initial rate · f(epoch); one function for all groups or one for each.
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
// Each epoch's rate is the last one's times f(epoch).
class MultiplicativeLR : public LambdaLR {
 public:
  MultiplicativeLR(Optimizer& optimizer, F f);

 protected:
  Rates get_lr() override;
};
// The rate times gamma every step_size epochs.
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
// The rate times gamma at each of the epochs `milestones`.
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
// The initial rate times `factor` until epoch total_iters, then the initial rate. ValueError unless 0 <= factor <= 1.
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
// The initial rate times a factor that goes from start_factor to end_factor in total_iters epochs. ValueError unless 0 < start <= 1 and 0 <= end <= 1.
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
// The rate times gamma every epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  Rates get_lr() override;
  Rates closed_form() override;

 private:
  double gamma_;
};
// initial rate · (1 - epoch / total_iters) ^ power, 0 from epoch total_iters on.
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
// From the initial rate down to eta_min in t_max epochs, along a cosine, and up again.
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
// Cosine annealing that starts again after t_0 epochs, then after t_0 · t_mult, and so on. ValueError unless both are at least 1.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0);
  void step() override;
  // To an epoch that may be a fraction (epoch + batch / batches). ValueError for a negative one.
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
  double pct_start = 0.3;      // the share of steps that go up
  bool linear = false;         // a line, or a cosine
  bool cycle_momentum = true;  // momentum (or beta1) moves the other way
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;  // come down as long as up, then to the end rate
};
// Up from max_lr / div_factor to max_lr, then down to the start rate / final_div_factor; a step for each batch. ValueError for settings out of range, and
// for more steps than total_steps.
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
  std::optional<double> step_size_down = {};  // as up
  std::string mode = "triangular";            // "triangular2" halves each cycle's height, "exp_range" has it shrink by gamma each step
  double gamma = 1;
  std::function<double(double)> scale_fn = nullptr;  // the factor of the height, for a cycle's number or a step's
  bool scale_by_cycle = true;
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;
};
// Between base_lr and max_lr, up in step_size_up steps and down in step_size_down; a step for each batch. ValueError for another mode.
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

// One schedule after the other; the next takes over at each of the epochs `milestones`, one fewer than schedules (ValueError otherwise, and for schedules of
// another optimizer).
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
// Several schedules at once: each step applies all of them.
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
  bool maximize = false;  // the measure should grow (Python's mode="max")
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;  // an improvement counts if it exceeds this,
  bool absolute = false;    // absolutely or relatively
  int64_t cooldown = 0;     // epochs to wait after a reduction
  std::vector<double> min_lr = {0};
  double eps = 1e-8;  // smaller changes are not made
};
// The rate times `factor` when a measure has not improved for more than `patience` epochs. ValueError for a factor of 1 or more.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options = {});
  void step() override;  // RuntimeError: there is no measure
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
