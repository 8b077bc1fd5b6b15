#include "naru/optim/lr_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace naru::optim {
namespace {

double number(const LRScheduler::State& state, const std::string& name) {
  const auto found = state.find(name);
  if (found == state.end()) throw ValueError("lr_scheduler.load_state_dict: there is no \"{}\"", name);
  return found->second;
}

double power(double base, int64_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

}  // namespace

PerGroup::PerGroup(double one) : values{one} {}
PerGroup::PerGroup(int one) : values{static_cast<double>(one)} {}
PerGroup::PerGroup(std::vector<double> list) : values(std::move(list)) {}
PerGroup::PerGroup(std::initializer_list<double> list) : values(list) {}

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
LRScheduler::~LRScheduler() = default;
LRScheduler::Rates LRScheduler::closed_form() { return get_lr(); }
LRScheduler::Rates SequentialLR::get_lr() { return rates(); }
LRScheduler::Rates ChainedScheduler::get_lr() { return rates(); }
LRScheduler::Rates ReduceLROnPlateau::get_lr() { return rates(); }

std::vector<double> PerGroup::of(const Optimizer& optimizer, const char* name) const {
  if (values.size() == 1) return std::vector<double>(optimizer.groups(), values[0]);
  if (values.size() != optimizer.groups()) throw ValueError("Expected {} {}, but got {}", optimizer.groups(), name, values.size());
  return values;
}

void LRScheduler::begin() {
  for (size_t g = 0; g < optimizer_.groups(); ++g) base_.push_back(optimizer_.initial_lr(g));
  step();
}

LRScheduler::Rates LRScheduler::rates() const {
  Rates list;
  for (size_t g = 0; g < optimizer_.groups(); ++g) list.push_back(optimizer_.lr(g));
  return list;
}

void LRScheduler::set_rates(const Rates& rates) {
  for (size_t g = 0; g < rates.size(); ++g) optimizer_.set_lr(g, rates[g]);
  last_lr_ = this->rates();
}

void LRScheduler::step() {
  ++steps_;
  ++last_epoch_;
  set_rates(get_lr());
}

void LRScheduler::step(double epoch) {
  ++steps_;
  last_epoch_ = static_cast<int64_t>(epoch);
  set_rates(closed_form());
}

LRScheduler::State LRScheduler::state_dict() const {
  State state{{"last_epoch", static_cast<double>(last_epoch_)}, {"_step_count", static_cast<double>(steps_)}};
  for (size_t g = 0; g < last_lr_.size(); ++g) state[fmt::format("_last_lr.{}", g)] = last_lr_[g];
  for (size_t g = 0; g < base_.size(); ++g) state[fmt::format("base_lrs.{}", g)] = base_[g];
  return state;
}

void LRScheduler::load_state_dict(const State& state) {
  const double epoch = number(state, "last_epoch"), steps = number(state, "_step_count");
  Rates last, base;
  for (size_t g = 0; g < last_lr_.size(); ++g) last.push_back(number(state, fmt::format("_last_lr.{}", g)));
  for (size_t g = 0; g < base_.size(); ++g) base.push_back(number(state, fmt::format("base_lrs.{}", g)));
  last_epoch_ = static_cast<int64_t>(epoch), steps_ = static_cast<int64_t>(steps);
  last_lr_ = std::move(last), base_ = std::move(base);
}

LambdaLR::LambdaLR(Optimizer& optimizer, F f) : LambdaLR(optimizer, std::vector<F>(optimizer.groups(), std::move(f))) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<F> each) : LambdaLR(optimizer, std::move(each), false) { begin(); }
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<F> each, bool) : LRScheduler(optimizer), f_(std::move(each)) {
  if (f_.size() != optimizer.groups()) throw ValueError("Expected {} lr_lambdas, but got {}", optimizer.groups(), f_.size());
}
LRScheduler::Rates LambdaLR::get_lr() {
  Rates list;
  for (size_t g = 0; g < base_.size(); ++g) list.push_back(base_[g] * f_[g](last_epoch_));
  return list;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, F f)
    : LambdaLR(optimizer, std::vector<F>(optimizer.groups(), std::move(f)), false) {
  begin();
}
LRScheduler::Rates MultiplicativeLR::get_lr() {
  Rates list = rates();
  if (last_epoch_ != 0)
    for (size_t g = 0; g < list.size(); ++g) list[g] *= f_[g](last_epoch_);
  return list;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma) : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  if (step_size < 1) throw ValueError("StepLR: step_size must be at least 1, got {}", step_size);
  begin();
}
LRScheduler::Rates StepLR::get_lr() {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? rates() : each([&](double rate, double) { return rate * gamma_; });
}
LRScheduler::Rates StepLR::closed_form() {
  return each([&](double, double base) { return base * power(gamma_, last_epoch_ / step_size_); });
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  begin();
}
LRScheduler::Rates MultiStepLR::get_lr() {
  const auto here = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return here == 0 ? rates() : each([&](double rate, double) { return rate * power(gamma_, here); });
}
LRScheduler::Rates MultiStepLR::closed_form() {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  return each([&](double, double base) { return base * power(gamma_, passed); });
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_(total_iters) {
  if (factor > 1 || factor < 0) throw ValueError("Constant multiplicative factor expected to be between 0 and 1.");
  begin();
}
LRScheduler::Rates ConstantLR::get_lr() {
  if (last_epoch_ == 0) return each([&](double rate, double) { return rate * factor_; });
  return last_epoch_ != total_ ? rates() : each([&](double rate, double) { return rate * (1.0 / factor_); });
}
LRScheduler::Rates ConstantLR::closed_form() {
  return each([&](double, double base) { return base * (last_epoch_ < total_ ? factor_ : 1.0); });
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  if (start_factor > 1 || start_factor <= 0)
    throw ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
  if (end_factor > 1 || end_factor < 0) throw ValueError("Ending multiplicative factor expected to be between 0 and 1.");
  begin();
}
LRScheduler::Rates LinearLR::get_lr() {
  if (last_epoch_ == 0) return each([&](double rate, double) { return rate * start_; });
  if (last_epoch_ > total_) return rates();
  const double change = end_ - start_, before = static_cast<double>(total_) * start_ + static_cast<double>(last_epoch_ - 1) * change;
  return each([&](double rate, double) { return rate * (1.0 + change / before); });
}
LRScheduler::Rates LinearLR::closed_form() {
  const double share = static_cast<double>(std::min(total_, last_epoch_)) / static_cast<double>(total_);
  return each([&](double, double base) { return base * (start_ + (end_ - start_) * share); });
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { begin(); }
LRScheduler::Rates ExponentialLR::get_lr() {
  return last_epoch_ == 0 ? rates() : each([&](double rate, double) { return rate * gamma_; });
}
LRScheduler::Rates ExponentialLR::closed_form() {
  return each([&](double, double base) { return base * power(gamma_, last_epoch_); });
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double p) : LRScheduler(optimizer), total_(total_iters), power_(p) {
  begin();
}
LRScheduler::Rates PolynomialLR::get_lr() {
  if (last_epoch_ == 0 || last_epoch_ > total_) return rates();
  const double n = static_cast<double>(total_), now = 1 - static_cast<double>(last_epoch_) / n,
               before = 1 - static_cast<double>(last_epoch_ - 1) / n;
  return each([&](double rate, double) { return rate * std::pow(now / before, power_); });
}
LRScheduler::Rates PolynomialLR::closed_form() {
  const double left = 1 - static_cast<double>(std::min(total_, last_epoch_)) / static_cast<double>(total_);
  return each([&](double, double base) { return base * std::pow(left, power_); });
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  if (t_max < 1) throw ValueError("CosineAnnealingLR: T_max must be at least 1, got {}", t_max);
  begin();
}
LRScheduler::Rates CosineAnnealingLR::get_lr() {
  if (last_epoch_ == 0) return rates();
  if (steps_ == 1) return closed_form();
  const double n = static_cast<double>(t_max_), pi = std::numbers::pi;
  if ((last_epoch_ - 1 - t_max_) % (2 * t_max_) == 0) {
    // Just after the minimum, the recursive formula is 0 / 0.
    const double rise = (1 - std::cos(pi / n)) / 2;
    return each([&](double rate, double base) { return rate + (base - eta_min_) * rise; });
  }
  const double now = 1 + std::cos(pi * static_cast<double>(last_epoch_) / n),
               before = 1 + std::cos(pi * static_cast<double>(last_epoch_ - 1) / n);
  return each([&](double rate, double) { return now / before * (rate - eta_min_) + eta_min_; });
}
LRScheduler::Rates CosineAnnealingLR::closed_form() {
  const double height = (1 + std::cos(std::numbers::pi * static_cast<double>(last_epoch_) / static_cast<double>(t_max_))) / 2;
  return each([&](double, double base) { return eta_min_ + (base - eta_min_) * height; });
}

// --- schedulers that combine others

SequentialLR::SequentialLR(Optimizer& optimizer, Schedules schedulers, std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  if (schedulers_.empty()) throw ValueError("SequentialLR expects at least one scheduler to be chained, but got no scheduler.");
  for (size_t i = 0; i < schedulers_.size(); ++i)
    if (&schedulers_[i]->optimizer() != &optimizer)
      throw ValueError("SequentialLR expects all schedulers to belong to the same optimizer, but the scheduler at index {} does not", i);
  if (milestones_.size() + 1 != schedulers_.size())
    throw ValueError(
        "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got number of "
        "schedulers {} and the number of milestones to be equal to {}",
        schedulers_.size(), milestones_.size());
  last_epoch_ = 0;
  // Constructing the schedulers changed the rates: restore the initial rates, then take the first scheduler's first step.
  for (size_t g = 0; g < optimizer.groups(); ++g) optimizer.set_lr(g, optimizer.initial_lr(g));
  for (const auto& s : schedulers_) --s->last_epoch_;
  schedulers_[0]->steps_ = 0;
  schedulers_[0]->step();
  last_lr_ = schedulers_[0]->get_last_lr();
}
void SequentialLR::step() {
  ++last_epoch_;
  const auto i = static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin());
  if (i > 0 && milestones_[i - 1] == last_epoch_)
    schedulers_[i]->step(0.0);
  else
    schedulers_[i]->step();
  last_lr_ = schedulers_[i]->get_last_lr();
}

namespace {

LRScheduler::State with_parts(LRScheduler::State own, const SequentialLR::Schedules& parts) {
  for (size_t i = 0; i < parts.size(); ++i)
    for (const auto& [name, value] : parts[i]->state_dict()) own[fmt::format("_schedulers.{}.{}", i, name)] = value;
  return own;
}
void load_parts(const LRScheduler::State& state, const SequentialLR::Schedules& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string prefix = fmt::format("_schedulers.{}.", i);
    LRScheduler::State own;
    for (const auto& [name, value] : state)
      if (name.starts_with(prefix)) own[name.substr(prefix.size())] = value;
    parts[i]->load_state_dict(own);
  }
}

}  // namespace

LRScheduler::State SequentialLR::state_dict() const { return with_parts(LRScheduler::state_dict(), schedulers_); }
void SequentialLR::load_state_dict(const State& state) {
  load_parts(state, schedulers_);
  LRScheduler::load_state_dict(state);
}

ChainedScheduler::ChainedScheduler(SequentialLR::Schedules schedulers)
    : LRScheduler(schedulers.empty()
                      ? throw ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
                      : schedulers[0]->optimizer()),
      schedulers_(std::move(schedulers)) {
  for (const auto& s : schedulers_)
    if (&s->optimizer() != &optimizer_) throw ValueError("ChainedScheduler expects all schedulers to belong to the same optimizer");
  last_lr_ = rates();
}
void ChainedScheduler::step() {
  for (const auto& s : schedulers_) s->step();
  last_lr_ = rates();
}
LRScheduler::State ChainedScheduler::state_dict() const { return with_parts(LRScheduler::state_dict(), schedulers_); }
void ChainedScheduler::load_state_dict(const State& state) {
  load_parts(state, schedulers_);
  LRScheduler::load_state_dict(state);
}

// --- schedulers driven by a metric

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, PlateauOptions options)
    : LRScheduler(optimizer),
      o_(std::move(options)),
      min_lrs_(PerGroup(o_.min_lr).of(optimizer, "min_lrs")),
      best_(o_.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  if (o_.factor >= 1) throw ValueError("Factor should be < 1.0.");
  last_epoch_ = 0;
  last_lr_ = rates();
}
void ReduceLROnPlateau::step() { throw RuntimeError("ReduceLROnPlateau: step() wants the measure that should improve: step(loss)"); }
bool ReduceLROnPlateau::is_better(double measure) const {
  const double sign = o_.maximize ? 1 : -1;
  const double bound = o_.absolute ? best_ + sign * o_.threshold : best_ * (1 + sign * o_.threshold);
  return o_.maximize ? measure > bound : measure < bound;
}
void ReduceLROnPlateau::step(double measure) {
  ++last_epoch_;
  if (is_better(measure))
    best_ = measure, bad_ = 0;
  else
    ++bad_;
  if (cooling_ > 0) --cooling_, bad_ = 0;
  if (bad_ > o_.patience) {
    for (size_t g = 0; g < optimizer_.groups(); ++g) {
      const double old = optimizer_.lr(g), lower = std::max(old * o_.factor, min_lrs_[g]);
      if (old - lower > o_.eps) optimizer_.set_lr(g, lower);
    }
    cooling_ = o_.cooldown, bad_ = 0;
  }
  last_lr_ = rates();
}
LRScheduler::State ReduceLROnPlateau::state_dict() const {
  State state = LRScheduler::state_dict();
  state["best"] = best_, state["num_bad_epochs"] = static_cast<double>(bad_), state["cooldown_counter"] = static_cast<double>(cooling_);
  return state;
}
void ReduceLROnPlateau::load_state_dict(const State& state) {
  const double best = number(state, "best"), bad = number(state, "num_bad_epochs"), cooling = number(state, "cooldown_counter");
  LRScheduler::load_state_dict(state);
  best_ = best, bad_ = static_cast<int64_t>(bad), cooling_ = static_cast<int64_t>(cooling);
}

}  // namespace naru::optim
