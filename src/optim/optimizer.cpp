#include <map>

#include "naru/autograd.h"
#include "naru/graph.h"
#include "naru/optim.h"

namespace naru::optim {

Optimizer::Optimizer(std::vector<Tensor> params) : params_(std::move(params)), steps_(params_.size()) {
  if (params_.empty()) throw ValueError("optimizer got an empty parameter list");
  for (size_t i = 0; i < params_.size(); ++i) {
    if (!params_[i].defined()) throw TypeError("optimizer: parameter {} is an undefined tensor", i);
    if (!params_[i].is_leaf()) throw ValueError("can't optimize a non-leaf Tensor (parameter {}, shape {})", i, params_[i].sizes().str());
    for (size_t j = 0; j < i; ++j)
      if (params_[j].is(params_[i])) throw ValueError("optimizer contains a parameter group with duplicate parameters ({} and {})", j, i);
  }
}

std::vector<Tensor>& Optimizer::add_slot(std::string name) {
  slots_.push_back(std::make_unique<Slot>(Slot{std::move(name), std::vector<Tensor>(params_.size())}));
  return slots_.back()->tensors;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (Tensor& p : params_) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (set_to_none)
      p.set_grad({});
    else
      g.detach_().zero_();
  }
}

std::vector<size_t> Optimizer::with_gradient() const {
  std::vector<size_t> which;
  for (size_t i = 0; i < params_.size(); ++i)
    if (params_[i].grad().defined()) which.push_back(i);
  return which;
}

void Optimizer::follow_parameters(std::vector<Tensor>& slot, const std::vector<size_t>& which) {
  for (size_t i : which)
    if (slot[i].defined()) slot[i] = slot[i].to(params_[i].device(), params_[i].dtype(), false, false);
}

void Optimizer::prepare_slot(std::vector<Tensor>& slot, const std::vector<size_t>& which) {
  follow_parameters(slot, which);
  for (size_t i : which)
    if (!slot[i].defined() && is_capturing(params_[i].device()))
      throw RuntimeError(
          "optimizer: the first step makes its state, which each replay of the graph would make anew; do one step before the capture");
  for (size_t i : which)
    if (!slot[i].defined()) slot[i] = zeros_like(params_[i].detach());
}

Optimizer::State Optimizer::state_dict() const {
  State state;
  state.emplace_back("step", tensor(steps(), Options(Device(DeviceType::Cpu))));
  for (const auto& slot : slots_)
    for (size_t i = 0; i < slot->tensors.size(); ++i)
      if (slot->tensors[i].defined()) state.emplace_back(fmt::format("{}.{}", slot->name, i), slot->tensors[i]);
  return state;
}

void Optimizer::load_state_dict(const State& state) {
  const NoGrad no_grad;
  std::map<std::string, Tensor> given(state.begin(), state.end());
  const auto steps = given.find("step");
  if (steps == given.end() || steps->second.numel() != static_cast<int64_t>(params_.size()))
    throw RuntimeError("optimizer.load_state_dict: wanted \"step\" with {} numbers, one per parameter; got {}", params_.size(),
                       steps == given.end() ? "none" : steps->second.sizes().str());
  const std::vector<int64_t> counts = steps->second.to_ints();
  given.erase(steps);
  std::vector<std::pair<Tensor*, Tensor>> found;
  for (const auto& slot : slots_)
    for (size_t i = 0; i < params_.size(); ++i) {
      const auto entry = given.find(fmt::format("{}.{}", slot->name, i));
      found.emplace_back(&slot->tensors[i], Tensor());
      if (entry == given.end()) continue;
      if (!(entry->second.sizes() == params_[i].sizes()))
        throw RuntimeError("optimizer.load_state_dict: {} has shape {}, its parameter {}", entry->first, entry->second.sizes().str(),
                           params_[i].sizes().str());
      found.back().second = entry->second.detach().to(params_[i].device(), params_[i].dtype(), false, true);
      given.erase(entry);
    }
  if (!given.empty()) throw RuntimeError("optimizer.load_state_dict: this optimizer has no state called \"{}\"", given.begin()->first);
  for (auto& [place, value] : found) *place = value;
  steps_ = counts;
  forget_counts();
}

namespace {

void require(bool good, const char* what, double got) {
  if (!good) throw ValueError("Invalid {}: {}", what, got);
}

template <class T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<size_t>& which) {
  std::vector<T> list;
  for (size_t i : which) list.push_back(all[i]);
  return list;
}

std::vector<Tensor> gradients(const std::vector<Tensor>& params, const std::vector<size_t>& which) {
  std::vector<Tensor> list;
  for (size_t i : which) list.push_back(params[i].grad());
  return list;
}

}  // namespace

SGD::SGD(std::vector<Tensor> params, SgdOptions o) : Optimizer(std::move(params)), options(o), momenta_(add_slot("momentum_buffer")) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.momentum >= 0, "momentum value", o.momentum);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) throw ValueError("Nesterov momentum requires a momentum and zero dampening");
}

void SGD::step() {
  const NoGrad no_grad;
  const std::vector<size_t> which = with_gradient();
  if (which.empty()) return;
  follow_parameters(momenta_, which);
  std::vector<Tensor> momenta = chosen(momenta_, which);
  sgd_step(chosen(params_, which), gradients(params_, which), momenta, options);
  for (size_t k = 0; k < which.size(); ++k) {
    if (options.momentum != 0) momenta_[which[k]] = momenta[k];
    ++steps_[which[k]];
  }
}

Adam::Adam(std::vector<Tensor> params, AdamOptions o)
    : Optimizer(std::move(params)),
      options(o),
      exp_avg_(add_slot("exp_avg")),
      exp_avg_sq_(add_slot("exp_avg_sq")),
      max_exp_avg_sq_(add_slot("max_exp_avg_sq")) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.eps >= 0, "epsilon value", o.eps);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta parameter at index 0", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta parameter at index 1", o.beta2);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
}

void Adam::step() {
  const NoGrad no_grad;
  const std::vector<size_t> all = with_gradient();
  prepare_slot(exp_avg_, all);
  prepare_slot(exp_avg_sq_, all);
  if (options.amsgrad) prepare_slot(max_exp_avg_sq_, all);
  if (options.capturable) return step_on_device(all);
  // Parameters that have made equally many steps go together.
  std::map<int64_t, std::vector<size_t>> by_step;
  for (size_t i : all) by_step[++steps_[i]].push_back(i);
  for (const auto& [step, which] : by_step)
    adam_step(chosen(params_, which), gradients(params_, which), chosen(exp_avg_, which), chosen(exp_avg_sq_, which),
              options.amsgrad ? chosen(max_exp_avg_sq_, which) : std::vector<Tensor>(), step, options);
}

void Adam::step_on_device(const std::vector<size_t>& all) {
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
    adam_step(chosen(params_, which), gradients(params_, which), chosen(exp_avg_, which), chosen(exp_avg_sq_, which),
              options.amsgrad ? chosen(max_exp_avg_sq_, which) : std::vector<Tensor>(), counts_[which[0]], options.lr, options);
  }
}

std::vector<int64_t> Adam::steps() const {
  std::vector<int64_t> all = steps_;
  for (size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i].defined()) all[i] = static_cast<int64_t>(counts_[i].item<double>());
  return all;
}

}  // namespace naru::optim
