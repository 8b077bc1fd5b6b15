#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/device/graph.h"
#include "naru/ops/complex.h"
#include "naru/optim.h"

namespace naru::optim {
namespace {
constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
}

Optimizer::Optimizer(std::vector<Tensor> params) : params_(std::move(params)), steps_(params_.size()) {
  if (params_.empty()) throw ValueError("optimizer got an empty parameter list");
  check_parameters(0);
  ends_.push_back(params_.size());
}

Optimizer::Optimizer(Optimizer&&) = default;
Optimizer::~Optimizer() = default;
size_t Optimizer::groups() const noexcept { return ends_.size(); }
std::vector<std::pair<std::string, double>> Optimizer::numbers(size_t) const { return {}; }
std::vector<int64_t> Optimizer::steps() const { return steps_; }
std::vector<Optimizer::Setting> Optimizer::settings_of(size_t) const { return {}; }

void* settings_in(const std::vector<std::shared_ptr<void>>& groups, size_t group) { return groups.at(group).get(); }

void Optimizer::check_parameters(size_t from) const {
  for (size_t i = from; i < params_.size(); ++i) {
    if (!params_[i].defined()) throw TypeError("optimizer: parameter {} is an undefined tensor", i);
    if (!params_[i].is_leaf()) throw ValueError("can't optimize a non-leaf Tensor (parameter {}, shape {})", i, params_[i].sizes().str());
    for (size_t j = 0; j < i; ++j) {
      if (!params_[j].is(params_[i])) continue;
      if (j < from) throw ValueError("some parameters appear in more than one parameter group ({} and {})", j, i);
      throw ValueError("optimizer contains a parameter group with duplicate parameters ({} and {})", j, i);
    }
  }
}

void Optimizer::add_parameters(std::vector<Tensor> params) {
  const size_t before = params_.size();
  params_.insert(params_.end(), params.begin(), params.end());
  try {
    check_parameters(before);
  } catch (...) {
    params_.resize(before);
    throw;
  }
  steps_.resize(params_.size());
  for (const auto& slot : slots_) slot->tensors.resize(params_.size());
  ends_.push_back(params_.size());
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    const EnableGrad on;
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::check_group(size_t group) const {
  if (group >= ends_.size()) throw IndexError("optimizer: there is no parameter group {}, of {}", group, ends_.size());
}

std::vector<Tensor> Optimizer::group_parameters(size_t group) const {
  check_group(group);
  const auto at = [&](size_t i) { return params_.begin() + static_cast<std::ptrdiff_t>(i); };
  return {at(group ? ends_[group - 1] : 0), at(ends_[group])};
}

double Optimizer::lr(size_t group) const {
  check_group(group);
  const double* place = const_cast<Optimizer&>(*this).lr_place(group);
  if (!place) throw NotImplementedError("optimizer: it has no learning rate that could be asked for; override lr_place()");
  return *place;
}
void Optimizer::set_lr(size_t group, double lr) {
  this->lr(group);
  *lr_place(group) = lr;
}
void Optimizer::set_lr(double lr) {
  for (size_t group = 0; group < groups(); ++group) set_lr(group, lr);
}

std::optional<double> Optimizer::momentum(size_t group) const {
  check_group(group);
  const double* place = const_cast<Optimizer&>(*this).momentum_place(group);
  return place ? std::optional(*place) : std::nullopt;
}
void Optimizer::set_momentum(size_t group, double momentum) {
  if (!this->momentum(group)) throw NotImplementedError("optimizer: it has neither momentum nor beta1");
  *momentum_place(group) = momentum;
}

double Optimizer::initial_lr(size_t group) {
  const double now = lr(group);
  initial_lrs_.resize(groups(), kUnset);
  if (std::isnan(initial_lrs_[group])) initial_lrs_[group] = now;
  return initial_lrs_[group];
}
void Optimizer::set_initial_lr(size_t group, double lr) {
  check_group(group);
  initial_lrs_.resize(groups(), kUnset);
  initial_lrs_[group] = lr;
}

std::vector<Tensor>& Optimizer::add_slot(std::string name) {
  slots_.push_back(std::make_shared<Slot>(Slot{std::move(name), std::vector<Tensor>(params_.size())}));
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

namespace {

bool has_complex(const std::vector<Tensor>& params) {
  return std::any_of(params.begin(), params.end(), [](const Tensor& p) { return is_complex(p.dtype()); });
}
// For a complex parameter, views a state tensor, which stores pairs of reals, as complex numbers.
Tensor shown(const Tensor& part, const Tensor& param) {
  return is_complex(param.dtype()) && part.dim() == param.dim() + 1 ? view_as_complex(part) : part;
}

}  // namespace

Optimizer::AsReal::AsReal(Optimizer& optimizer) : optimizer_(optimizer) {
  if (!has_complex(optimizer.params_)) return;
  std::vector<Tensor> pairs = optimizer.params_;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Tensor whole = pairs[i];
    if (!is_complex(whole.dtype())) continue;
    pairs[i] = view_as_real(whole.detach());
    if (const Tensor g = whole.grad(); g.defined()) pairs[i].set_grad(view_as_real(g.detach()));
    complex_.emplace_back(i, whole);
  }
  optimizer.params_ = std::move(pairs);
}

Optimizer::AsReal::~AsReal() {
  for (auto& [i, whole] : complex_) optimizer_.params_[i] = std::move(whole);
}

void Optimizer::refuse_complex(const char* name) const {
  if (has_complex(params_)) throw RuntimeError("{} does not support complex parameters", name);
}

std::vector<size_t> Optimizer::with_gradient(size_t begin, size_t end) const {
  std::vector<size_t> which;
  which.reserve(end - begin);
  for (size_t i = begin; i < end; ++i)
    if (params_[i].grad().defined()) which.push_back(i);
  return which;
}
std::vector<size_t> Optimizer::with_gradient() const { return with_gradient(0, params_.size()); }
std::vector<size_t> Optimizer::with_gradient(size_t group) const { return with_gradient(group ? ends_[group - 1] : 0, ends_[group]); }

void Optimizer::follow_parameters(std::vector<Tensor>& slot, const std::vector<size_t>& which) {
  for (size_t i : which)
    if (slot[i].defined() && !(slot[i].dtype() == params_[i].dtype() && slot[i].device() == params_[i].device()))
      slot[i] = slot[i].to(params_[i].device(), params_[i].dtype(), false, false);
}

void Optimizer::prepare_slot(std::vector<Tensor>& slot, const std::vector<size_t>& which) {
  follow_parameters(slot, which);
  for (size_t i : which)
    if (!slot[i].defined() && is_capturing(params_[i].device()))
      throw RuntimeError(
          "optimizer: the first step makes its state, which each replay of the graph would make anew; do one step before the capture");
  for (size_t i : which)
    if (!slot[i].defined()) {
      slot[i] = zeros_like(params_[i].detach());
      slot[i].impl()->serves(MemoryRole::OptimizerState);
    }
}

std::vector<Optimizer::Setting> Optimizer::group_settings(size_t group) const {
  check_group(group);
  std::vector<Setting> list = settings_of(group);
  if (group < initial_lrs_.size() && !std::isnan(initial_lrs_[group]))
    list.push_back({"initial_lr", Setting::Kind::Number, initial_lrs_[group]});
  return list;
}

Optimizer::State Optimizer::state_dict() const {
  const Device host(DeviceType::Cpu);
  State state;
  state.emplace_back("step", tensor(steps(), host));
  for (const auto& slot : slots_)
    for (size_t i = 0; i < slot->tensors.size(); ++i)
      if (slot->tensors[i].defined()) state.emplace_back(fmt::format("{}.{}", slot->name, i), shown(slot->tensors[i], params_[i]));
  for (size_t group = 0; group < groups(); ++group)
    for (const Setting& s : group_settings(group)) {
      std::vector<double> values{s.value};
      if (s.kind == Setting::Kind::Pair) values.push_back(s.second);
      state.emplace_back(fmt::format("group.{}.{}", group, s.name), tensor(values, Options(DType::F64, host)));
    }
  return state;
}

namespace {

using Given = std::map<std::string, Tensor>;

// Removes the settings of a group from `given` and returns them. Throws RuntimeError for a setting without numbers.
std::vector<Optimizer::Setting> take_settings(Given& given, size_t group) {
  std::vector<Optimizer::Setting> list;
  const std::string prefix = fmt::format("group.{}.", group);
  for (auto at = given.lower_bound(prefix); at != given.end() && at->first.starts_with(prefix); at = given.erase(at)) {
    const std::vector<double> values = at->second.to_doubles();
    if (values.empty() || values.size() > 2)
      throw RuntimeError("optimizer.load_state_dict: {} should be one number or two, got shape {}", at->first, at->second.sizes().str());
    const auto kind = values.size() == 2 ? Optimizer::Setting::Kind::Pair : Optimizer::Setting::Kind::Number;
    list.push_back({at->first.substr(prefix.size()), kind, values[0], values.size() == 2 ? values[1] : 0});
  }
  return list;
}

}  // namespace

void Optimizer::load_state_dict(const State& state) {
  const NoGrad no_grad;
  Given given(state.begin(), state.end());
  const auto steps = given.find("step");
  if (steps == given.end() || steps->second.numel() != static_cast<int64_t>(params_.size()))
    throw RuntimeError("optimizer.load_state_dict: wanted \"step\" with {} numbers, one per parameter; got {}", params_.size(),
                       steps == given.end() ? "none" : steps->second.sizes().str());
  const std::vector<int64_t> counts = steps->second.to_ints();
  given.erase(steps);
  std::vector<std::vector<Setting>> settings;
  for (size_t group = 0; group < groups(); ++group) {
    settings.push_back(take_settings(given, group));
    set_settings(group, settings.back(), false);
  }
  std::vector<std::pair<Tensor*, Tensor>> found;
  for (const auto& slot : slots_)
    for (size_t i = 0; i < params_.size(); ++i) {
      const auto entry = given.find(fmt::format("{}.{}", slot->name, i));
      found.emplace_back(&slot->tensors[i], Tensor());
      if (entry == given.end()) continue;
      if (const Dims wanted = slot_shape(slot->name, i); !(entry->second.sizes() == wanted))
        throw RuntimeError("optimizer.load_state_dict: {} has shape {}, its parameter {}", entry->first, entry->second.sizes().str(),
                           wanted.str());
      found.back().second = entry->second.detach().to(params_[i].device(), params_[i].dtype(), false, true);
      if (is_complex(params_[i].dtype())) found.back().second = view_as_real(found.back().second);
      given.erase(entry);
    }
  if (!given.empty()) throw RuntimeError("optimizer.load_state_dict: this optimizer has no state called \"{}\"", given.begin()->first);
  for (auto& [place, value] : found) *place = value;
  for (size_t group = 0; group < groups(); ++group) {
    set_settings(group, settings[group], true);
    for (const Setting& s : settings[group])
      if (s.name == "initial_lr") set_initial_lr(group, s.value);
  }
  steps_ = counts;
  forget_counts();
}

}  // namespace naru::optim
