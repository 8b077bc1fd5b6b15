// SGD, Adam and AdamW: each step is one kernel over a parameter, its gradient and its state (ops/nn/optimizer_steps.cpp).
#include <algorithm>
#include <map>

#include "naru/autograd.h"
#include "naru/optim.h"
#include "optim/checks.h"

namespace naru::optim {
namespace {

template <class T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<size_t>& which) {
  std::vector<T> list;
  list.reserve(which.size());
  for (size_t i : which) list.push_back(all[i]);
  return list;
}

std::vector<Tensor> gradients(const std::vector<Tensor>& params, const std::vector<size_t>& which) {
  std::vector<Tensor> list;
  list.reserve(which.size());
  for (size_t i : which) list.push_back(params[i].grad());
  return list;
}

}  // namespace

namespace {

void check_sgd(const SgdOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.momentum >= 0, "momentum value", o.momentum);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) throw ValueError("Nesterov momentum requires a momentum and zero dampening");
}

}  // namespace

SGD::SGD(std::vector<Tensor> params, SgdOptions o) : Grouped(std::move(params), o, check_sgd), momenta_(add_slot("momentum_buffer")) {}
SGD::SGD(std::vector<Tensor> params, double lr) : SGD(std::move(params), SgdOptions{.lr = lr}) {}

void SGD::step() {
  const NoGrad no_grad;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const SgdOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    if (which.empty()) continue;
    follow_parameters(momenta_, which);
    std::vector<Tensor> momenta = chosen(momenta_, which);
    sgd_step(chosen(params_, which), gradients(params_, which), momenta, o);
    for (size_t k = 0; k < which.size(); ++k) {
      if (o.momentum != 0) momenta_[which[k]] = momenta[k];
      ++steps_[which[k]];
    }
  }
}

Adam::Adam(std::vector<Tensor> params, AdamOptions o)
    : Grouped(std::move(params), o, check_betas<AdamOptions>),
      exp_avg_(add_slot("exp_avg")),
      exp_avg_sq_(add_slot("exp_avg_sq")),
      max_exp_avg_sq_(add_slot("max_exp_avg_sq")) {}
Adam::Adam(std::vector<Tensor> params, double lr) : Adam(std::move(params), AdamOptions{.lr = lr}) {}
void Adam::forget_counts() { counts_.clear(); }

AdamW::AdamW(std::vector<Tensor> params, AdamOptions o) : Adam(std::move(params), decoupled(o)) {}
AdamW::AdamW(std::vector<Tensor> params, double lr)
    : Adam(std::move(params), AdamOptions{.lr = lr, .weight_decay = 1e-2, .decoupled = true}) {}
void AdamW::forget_counts() {
  Adam::forget_counts();
  for (size_t group = 0; group < groups(); ++group) group_options(group).decoupled = true;
}
AdamOptions AdamW::decoupled(AdamOptions o) {
  o.decoupled = true;
  return o;
}

void Adam::step() {
  const NoGrad no_grad;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) step_group(with_gradient(group), group_options(group));
}

void Adam::step_group(const std::vector<size_t>& all, const AdamOptions& o) {
  prepare_slot(exp_avg_, all);
  prepare_slot(exp_avg_sq_, all);
  if (o.amsgrad) prepare_slot(max_exp_avg_sq_, all);
  if (o.capturable) return step_on_device(all, o);
  // Group parameters with the same number of steps.
  std::map<int64_t, std::vector<size_t>> by_step;
  for (size_t i : all) by_step[++steps_[i]].push_back(i);
  for (const auto& [step, which] : by_step)
    adam_step(chosen(params_, which), gradients(params_, which), chosen(exp_avg_, which), chosen(exp_avg_sq_, which),
              o.amsgrad ? chosen(max_exp_avg_sq_, which) : std::vector<Tensor>(), step, o);
}

void Adam::step_on_device(const std::vector<size_t>& all, const AdamOptions& o) {
  counts_.resize(params_.size());
  std::map<std::pair<int64_t, std::string>, Tensor> begun;
  for (size_t i : all) {
    const Device device = params_[i].device();
    if (!counts_[i].defined()) {
      Tensor& count = begun[{steps_[i], device.str()}];
      if (!count.defined()) count = full({}, static_cast<double>(steps_[i]), Options(DType::F32, device));
      counts_[i] = count;
    } else if (!(counts_[i].device() == device)) {
      counts_[i] = counts_[i].to(device);
    }
  }
  std::map<const void*, std::vector<size_t>> together;
  std::vector<const void*> order;
  for (size_t i : all) {
    std::vector<size_t>& which = together[counts_[i].impl()];
    if (which.empty()) order.push_back(counts_[i].impl());
    which.push_back(i);
  }
  for (const void* count : order) {
    const std::vector<size_t>& which = together[count];
    const auto sharers = std::count_if(counts_.begin(), counts_.end(), [&](const Tensor& c) { return c.defined() && c.impl() == count; });
    if (static_cast<size_t>(sharers) > which.size()) {  // some sharers have no gradient, so this is no step of theirs
      const Tensor own = counts_[which[0]].clone();
      for (size_t i : which) counts_[i] = own;
    }
    adam_step(chosen(params_, which), gradients(params_, which), chosen(exp_avg_, which), chosen(exp_avg_sq_, which),
              o.amsgrad ? chosen(max_exp_avg_sq_, which) : std::vector<Tensor>(), counts_[which[0]], o.lr, o);
  }
}

std::vector<int64_t> Adam::steps() const {
  std::vector<int64_t> all = steps_;
  for (size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i].defined()) all[i] = static_cast<int64_t>(counts_[i].item<double>());
  return all;
}

}  // namespace naru::optim
