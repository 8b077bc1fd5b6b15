// Cyclic schedules: warm restarts, one cycle, many cycles.
#include <cmath>
#include <numbers>

#include "naru/optim/lr_scheduler.h"

namespace naru::optim {
namespace {

void need_momentum(const Optimizer& optimizer) {
  if (!optimizer.momentum()) throw ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
}

}  // namespace

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult, double eta_min)
    : LRScheduler(optimizer), t_0_(t_0), t_i_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  if (t_0 < 1) throw ValueError("Expected positive integer T_0, but got {}", t_0);
  if (t_mult < 1) throw ValueError("Expected integer T_mult >= 1, but got {}", t_mult);
  begin();
}
void CosineAnnealingWarmRestarts::set() {
  ++steps_;
  set_rates(get_lr());
}
void CosineAnnealingWarmRestarts::step() {
  if (last_epoch_ < 0) return step(0.0);
  ++last_epoch_;
  t_cur_ += 1;
  if (t_cur_ >= static_cast<double>(t_i_)) {
    t_cur_ = std::fmod(t_cur_, static_cast<double>(t_i_));
    t_i_ *= t_mult_;
  }
  set();
}
void CosineAnnealingWarmRestarts::step(double epoch) {
  if (epoch < 0) throw ValueError("Expected non-negative epoch, but got {}", epoch);
  const double first = static_cast<double>(t_0_), times = static_cast<double>(t_mult_);
  t_i_ = t_0_;
  if (epoch < first) {
    t_cur_ = epoch;
  } else if (t_mult_ == 1) {
    t_cur_ = std::fmod(epoch, first);
  } else {
    const double cycle = std::floor(std::log(epoch / first * (times - 1) + 1) / std::log(times));
    t_cur_ = epoch - first * (std::pow(times, cycle) - 1) / (times - 1);
    t_i_ = static_cast<int64_t>(first * std::pow(times, cycle));
  }
  last_epoch_ = static_cast<int64_t>(std::floor(epoch));
  set();
}
LRScheduler::Rates CosineAnnealingWarmRestarts::get_lr() {
  const double height = (1 + std::cos(std::numbers::pi * t_cur_ / static_cast<double>(t_i_))) / 2;
  return each([&](double, double base) { return eta_min_ + (base - eta_min_) * height; });
}
LRScheduler::State CosineAnnealingWarmRestarts::state_dict() const {
  State state = LRScheduler::state_dict();
  state["T_cur"] = t_cur_, state["T_i"] = static_cast<double>(t_i_);
  return state;
}
void CosineAnnealingWarmRestarts::load_state_dict(const State& state) {
  const auto cur = state.find("T_cur"), length = state.find("T_i");
  if (cur == state.end() || length == state.end()) throw ValueError("lr_scheduler.load_state_dict: there is no \"T_cur\" or \"T_i\"");
  LRScheduler::load_state_dict(state);
  t_cur_ = cur->second, t_i_ = static_cast<int64_t>(length->second);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const PerGroup& max_lr, int64_t total_steps, OneCycleOptions o)
    : LRScheduler(optimizer), total_(total_steps), o_(o) {
  if (total_steps <= 0) throw ValueError("Expected positive integer total_steps, but got {}", total_steps);
  if (!(o.pct_start >= 0 && o.pct_start <= 1)) throw ValueError("Expected float between 0 and 1 pct_start, but got {}", o.pct_start);
  if (o.cycle_momentum) need_momentum(optimizer);
  const std::vector<double> top = max_lr.of(optimizer, "max_lr");
  std::vector<double> start = top, low;
  for (size_t g = 0; g < start.size(); ++g) {
    start[g] = top[g] / o.div_factor;
    low.push_back(start[g] / o.final_div_factor);
    optimizer.set_initial_lr(g, start[g]);
    if (o.cycle_momentum) optimizer.set_momentum(g, o.max_momentum);
  }
  const double n = static_cast<double>(total_steps), last = n - 1, up = o.pct_start * n;
  phases_.push_back({up - 1, start, top, o.max_momentum, o.base_momentum});
  if (o.three_phase) {
    phases_.push_back({2 * up - 2, top, start, o.base_momentum, o.max_momentum});
    phases_.push_back({last, start, low, o.max_momentum, o.max_momentum});
  } else {
    phases_.push_back({last, top, low, o.base_momentum, o.max_momentum});
  }
  begin();
}
LRScheduler::Rates OneCycleLR::get_lr() {
  if (last_epoch_ > total_) throw ValueError("Tried to step {} times. The specified number of total steps is {}", last_epoch_, total_);
  const auto between = [&](double from, double to, double share) {
    return o_.linear ? (to - from) * share + from : to + (from - to) / 2.0 * (std::cos(std::numbers::pi * share) + 1);
  };
  const double step = static_cast<double>(last_epoch_);
  double start = 0;
  size_t i = 0;
  while (i + 1 < phases_.size() && step > phases_[i].end) start = phases_[i++].end;
  const Phase& phase = phases_[i];
  const double share = (step - start) / (phase.end - start);
  Rates list;
  for (size_t g = 0; g < optimizer_.groups(); ++g) {
    list.push_back(between(phase.from[g], phase.to[g], share));
    if (o_.cycle_momentum) optimizer_.set_momentum(g, between(phase.momentum_from, phase.momentum_to, share));
  }
  return list;
}

CyclicLR::CyclicLR(Optimizer& optimizer, const PerGroup& base_lr, const PerGroup& max_lr, CyclicOptions options)
    : LRScheduler(optimizer),
      o_(std::move(options)),
      low_(base_lr.of(optimizer, "base_lr")),
      high_(max_lr.of(optimizer, "max_lr")),
      total_(o_.step_size_up + o_.step_size_down.value_or(o_.step_size_up)),
      ratio_(o_.step_size_up / total_) {
  if (o_.mode != "triangular" && o_.mode != "triangular2" && o_.mode != "exp_range" && !o_.scale_fn)
    throw ValueError("mode is invalid and scale_fn is None");
  if (o_.cycle_momentum) need_momentum(optimizer);
  if (!o_.scale_fn) o_.scale_by_cycle = o_.mode != "exp_range";
  for (size_t g = 0; g < low_.size(); ++g) optimizer.set_lr(g, low_[g]);
  begin();
}
LRScheduler::Rates CyclicLR::get_lr() {
  const double epoch = static_cast<double>(last_epoch_), cycle = std::floor(1 + epoch / total_), x = 1.0 + epoch / total_ - cycle;
  const double height = x <= ratio_ ? x / ratio_ : (x - 1) / (ratio_ - 1), at = o_.scale_by_cycle ? cycle : epoch;
  double scale = 1;
  if (o_.scale_fn)
    scale = o_.scale_fn(at);
  else if (o_.mode == "triangular2")
    scale = 1 / std::pow(2.0, at - 1);
  else if (o_.mode == "exp_range")
    scale = std::pow(o_.gamma, at);
  Rates list;
  for (size_t g = 0; g < low_.size(); ++g) {
    list.push_back(low_[g] + (high_[g] - low_[g]) * height * scale);
    if (o_.cycle_momentum) optimizer_.set_momentum(g, o_.max_momentum - (o_.max_momentum - o_.base_momentum) * height * scale);
  }
  return list;
}

}  // namespace naru::optim
