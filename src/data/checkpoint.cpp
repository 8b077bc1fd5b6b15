#include "naru/io/checkpoint.h"

#include <algorithm>
#include <optional>

#include "naru/ops.h"

namespace naru {
namespace {

using Setting = optim::Optimizer::Setting;

Value value_of(const Setting& s) {
  switch (s.kind) {
    case Setting::Kind::Switch:
      return s.value != 0;
    case Setting::Kind::Pair:
      return Value::tuple({s.value, s.second});
    default:
      return s.value;
  }
}

// The numbers of a setting in a file; empty if it has another type (None, a string).
std::vector<double> numbers_of(const Value& v) {
  using Kind = Value::Kind;
  if (v.kind() == Kind::Bool || v.kind() == Kind::Int || v.kind() == Kind::Float) return {v.to_double()};
  if (v.kind() == Kind::Tensor && v.tensor().numel() == 1) return {v.tensor().item<double>()};
  if ((v.kind() != Kind::Tuple && v.kind() != Kind::List) || v.size() != 2) return {};
  std::vector<double> both = numbers_of(v[0]);
  const std::vector<double> second = numbers_of(v[1]);
  both.insert(both.end(), second.begin(), second.end());
  return both.size() == 2 ? both : std::vector<double>();
}

// Splits "exp_avg.3" into "exp_avg" and 3.
std::pair<std::string, int64_t> slot_and_number(const std::string& name) {
  const size_t dot = name.rfind('.');
  return {name.substr(0, dot), std::stoll(name.substr(dot + 1))};
}

// True if a parameter's state entry is a scalar rather than a tensor shaped like the parameter.
bool is_number(const optim::Optimizer& optimizer, size_t parameter, const std::string& name) {
  for (const auto& [own, value] : optimizer.numbers(parameter))
    if (own == name) return true;
  return false;
}

}  // namespace

Value state_of(const nn::Module& module) {
  nn::NamedTensors state = module.state_dict();
  for (auto& [name, t] : state) t = t.detach();
  return state;
}

Value state_of(const optim::Optimizer& optimizer) {
  const optim::Optimizer::State flat = optimizer.state_dict();
  const std::vector<int64_t> steps = flat[0].second.to_ints();
  const Options host(DType::F32, Device(DeviceType::Cpu));
  std::vector<Value> each(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    each[i] = Value::Dict();
    if (steps[i] == 0) continue;
    each[i].insert("step", full({}, static_cast<double>(steps[i]), host));
    for (const auto& [name, number] : optimizer.numbers(i)) each[i].insert(name, full({}, number, host));
  }
  for (const auto& [name, t] : flat) {
    if (name == "step" || name.starts_with("group.")) continue;
    const auto [slot, number] = slot_and_number(name);
    each[static_cast<size_t>(number)].insert(slot, t);
  }
  Value state = Value::Dict();
  for (size_t i = 0; i < each.size(); ++i)
    if (each[i].size()) state.insert(static_cast<int64_t>(i), each[i]);

  Value::List groups;
  int64_t number = 0;
  for (size_t group = 0; group < optimizer.groups(); ++group) {
    Value settings = Value::Dict{{"foreach", {}}, {"capturable", false}, {"differentiable", false}, {"fused", {}}};
    for (const Setting& s : optimizer.group_settings(group)) settings.insert(s.name, value_of(s));
    Value::List numbers;
    for (size_t i = optimizer.group_parameters(group).size(); i > 0; --i) numbers.emplace_back(number++);
    settings.insert("params", std::move(numbers));
    groups.push_back(std::move(settings));
  }
  return Value::Dict{{"state", state}, {"param_groups", std::move(groups)}};
}

void load_state(nn::Module& module, const Value& state, bool strict) { module.load_state_dict(state.named_tensors(), strict); }

void load_state(optim::Optimizer& optimizer, const Value& saved) {
  const Value &groups = saved["param_groups"], &states = saved["state"];
  if (groups.size() != optimizer.groups()) throw ValueError("loaded state dict has a different number of parameter groups");
  optim::Optimizer::State flat;
  std::vector<double> steps(optimizer.parameters().size());
  std::vector<std::pair<size_t, std::pair<std::string, double>>> numbers_read;
  size_t i = 0;
  for (size_t group = 0; group < optimizer.groups(); ++group) {
    const Value& numbers = groups[group]["params"];
    if (numbers.size() != optimizer.group_parameters(group).size())
      throw ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
    const std::vector<Setting> own = optimizer.group_settings(group);
    for (const auto& [name, value] : groups[group].items()) {
      const std::vector<double> values = numbers_of(value);
      const bool known =
          name.text() == "initial_lr" || std::any_of(own.begin(), own.end(), [&](const Setting& s) { return s.name == name.text(); });
      if (known && !values.empty()) flat.emplace_back("group." + std::to_string(group) + "." + name.text(), tensor(values, DType::F64));
    }
    for (const Value& number : numbers.values()) {
      const size_t place = i++;
      if (!states.contains(number)) continue;
      for (const auto& [name, value] : states[number].items()) {
        if (name.text() == "step") {
          const std::vector<double> count = numbers_of(value);
          if (count.size() == 1) steps[place] = count[0];
        } else if (const std::vector<double> one = numbers_of(value); is_number(optimizer, place, name.text()) && one.size() == 1) {
          numbers_read.emplace_back(place, std::pair(name.text(), one[0]));
        } else if (value.kind() == Value::Kind::Tensor) {
          flat.emplace_back(name.text() + "." + std::to_string(place), value.tensor());
        }
      }
    }
  }
  flat.emplace_back("step", tensor(steps, DType::F64).to(DType::I64));
  optimizer.load_state_dict(flat);
  for (const auto& [place, number] : numbers_read) optimizer.set_number(place, number.first, number.second);
}

}  // namespace naru
