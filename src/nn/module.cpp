#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/node.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/nn.h"
#include "ops/common.h"

namespace naru::nn {
namespace {

// Makes `t` hold what `source` holds, keeping its identity: every handle to it sees the change. Its history is that of
// a leaf before and after.
void adopt(const Tensor& t, const Tensor& source) {
  TensorImpl &to = *t.impl(), &from = *source.impl();
  ops::replace_storage(t, from.storage);
  to.dtype = from.dtype;
  to.origin = from.origin;
  to.base = nullptr;
  to.set_geometry(from.sizes, from.strides, from.offset);
}

void convert(const Tensor& t, std::optional<Device> device, std::optional<DType> dtype, bool non_blocking) {
  if (!is_inexact(t.dtype())) dtype.reset();
  const Tensor changed = t.detach().to(device, dtype, non_blocking, false);
  if (changed.impl()->storage.get() != t.impl()->storage.get()) adopt(t, changed);
}

// Appends those not met before.
void add_new(NamedTensors& list, std::unordered_set<const TensorImpl*>& met, const std::string& name, const Tensor& t) {
  if (t.defined() && met.insert(t.impl()).second) list.emplace_back(name, t);
}

std::vector<Tensor> tensors_of(const NamedTensors& named) {
  std::vector<Tensor> list;
  for (const auto& [name, t] : named) list.push_back(t);
  return list;
}

std::string quoted_list(const std::vector<std::string>& keys) {
  std::string s;
  for (const std::string& k : keys) s += (s.empty() ? "\"" : ", \"") + k + "\"";
  return s;
}

std::string indented(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace

Tensor Module::forward(const Tensor&) {
  throw NotImplementedError("Module [{}] is missing the required \"forward\" function of one tensor", name());
}

void Module::check_name(const std::string& name) const {
  if (name.empty()) throw ValueError("{}: a parameter, buffer or module needs a name, got \"\"", this->name());
  if (name.find('.') != std::string::npos) throw ValueError("{}: name can't contain \".\", got \"{}\"", this->name(), name);
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return std::get<0>(entry) == name; });
  };
  const bool buffer = std::any_of(buffers_.begin(), buffers_.end(), [&](const Buffer& b) { return b.name == name; });
  if (taken(parameters_) || taken(children_) || buffer) throw ValueError("{}: '{}' already exists", this->name(), name);
}

Tensor Module::register_parameter(std::string name, Tensor t) {
  check_name(name);
  if (t.defined()) {
    if (!t.is_leaf())
      throw ValueError("Cannot assign non-leaf Tensor to parameter '{}': model parameters must be created explicitly", name);
    t.requires_grad_();
  }
  parameters_.emplace_back(std::move(name), t);
  return t;
}

Tensor Module::register_buffer(std::string name, Tensor t, bool persistent) {
  check_name(name);
  buffers_.push_back({std::move(name), t, persistent});
  return t;
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  if (!module) throw TypeError("{}: module '{}' is null", this->name(), name);
  children_.emplace_back(std::move(name), std::move(module));
}

void Module::walk(const std::string& prefix, const std::function<void(const std::string&, const Module&)>& f) const {
  f(prefix, *this);
  for (const auto& [name, child] : children_) child->walk(prefix + name + ".", f);
}

NamedTensors Module::named_parameters(bool recurse) const {
  NamedTensors list;
  std::unordered_set<const TensorImpl*> met;
  walk("", [&](const std::string& prefix, const Module& m) {
    if (!recurse && &m != this) return;
    for (const auto& [name, t] : m.parameters_) add_new(list, met, prefix + name, t);
  });
  return list;
}

NamedTensors Module::named_buffers(bool recurse) const {
  NamedTensors list;
  std::unordered_set<const TensorImpl*> met;
  walk("", [&](const std::string& prefix, const Module& m) {
    if (!recurse && &m != this) return;
    for (const Buffer& b : m.buffers_) add_new(list, met, prefix + b.name, b.tensor);
  });
  return list;
}

std::vector<Tensor> Module::parameters(bool recurse) const { return tensors_of(named_parameters(recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return tensors_of(named_buffers(recurse)); }

NamedTensors Module::state_dict() const {
  NamedTensors state;
  walk("", [&](const std::string& prefix, const Module& m) {
    for (const auto& [name, t] : m.parameters_)
      if (t.defined()) state.emplace_back(prefix + name, t.detach());
    for (const Buffer& b : m.buffers_)
      if (b.persistent && b.tensor.defined()) state.emplace_back(prefix + b.name, b.tensor.detach());
  });
  return state;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  std::unordered_map<std::string, Tensor> given(state.begin(), state.end());
  std::vector<std::string> missing, unexpected, errors;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [key, own] : state_dict()) {
    const auto found = given.find(key);
    if (found == given.end()) {
      missing.push_back(key);
      continue;
    }
    if (!(found->second.sizes() == own.sizes()))
      errors.push_back(
          fmt::format("size mismatch for {}: copying a param with shape torch.Size({}) from checkpoint, the shape in current model "
                      "is torch.Size({}).",
                      key, found->second.sizes().str(), own.sizes().str()));
    copies.emplace_back(own, found->second);
    given.erase(found);
  }
  for (const auto& [key, t] : state)
    if (given.count(key)) unexpected.push_back(key);
  if (strict && !unexpected.empty())
    errors.insert(errors.begin(), fmt::format("Unexpected key(s) in state_dict: {}. ", quoted_list(unexpected)));
  if (strict && !missing.empty()) errors.insert(errors.begin(), fmt::format("Missing key(s) in state_dict: {}. ", quoted_list(missing)));
  if (!errors.empty()) {
    std::string text = fmt::format("Error(s) in loading state_dict for {}:", name());
    for (const std::string& e : errors) text += "\n\t" + e;
    throw RuntimeError(text);
  }
  const NoGrad no_grad;
  for (auto& [own, value] : copies) own.copy_(value);
}

Module& Module::train(bool on) {
  training_ = on;
  for (auto& [name, child] : children_) child->train(on);
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& f) {
  for (auto& [name, child] : children_) child->apply(f);
  f(*this);
  return *this;
}

void Module::each_tensor(const std::function<void(Tensor&)>& f) {
  std::unordered_set<const TensorImpl*> met;
  apply([&](Module& m) {
    for (auto& [name, t] : m.parameters_)
      if (t.defined() && met.insert(t.impl()).second) f(t);
    for (Buffer& b : m.buffers_)
      if (b.tensor.defined() && met.insert(b.tensor.impl()).second) f(b.tensor);
  });
}

Module& Module::to(Device device, bool non_blocking) {
  each_tensor([&](Tensor& t) {
    convert(t, device, {}, non_blocking);
    if (const Tensor g = t.grad(); g.defined()) convert(g, device, {}, non_blocking);
  });
  return *this;
}

Module& Module::to(DType dtype) {
  if (!is_floating(dtype)) throw TypeError("nn.Module.to only accepts floating point dtypes, but got desired dtype={}", name_of(dtype));
  each_tensor([&](Tensor& t) {
    convert(t, {}, dtype, false);
    if (const Tensor g = t.grad(); g.defined()) convert(g, {}, dtype, false);
  });
  return *this;
}

Module& Module::requires_grad_(bool on) {
  for (Tensor& t : parameters()) t.requires_grad_(on);
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  for (Tensor& t : parameters()) {
    Tensor g = t.grad();
    if (!g.defined()) continue;
    if (set_to_none)
      t.set_grad({});
    else
      g.detach_().zero_();
  }
}

std::string Module::str() const {
  std::string inside = details();
  if (!children_.empty()) {
    for (const auto& [name, child] : children_) inside += "\n(" + name + "): " + child->str();
    inside = indented(inside) + "\n";
  }
  return name() + "(" + inside + ")";
}

void Sequential::push_back(std::shared_ptr<Module> module) { add_child(std::to_string(size()), std::move(module)); }
void ModuleList::push_back(std::shared_ptr<Module> module) { add_child(std::to_string(size()), std::move(module)); }

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& [name, module] : named_children()) y = module->forward(y);
  return y;
}

namespace {
Module& child_at(const Module& list, size_t i) {
  const auto& children = list.named_children();
  if (i >= children.size()) throw IndexError("index {} is out of range: {} has {} modules", i, list.name(), children.size());
  return *children[i].second;
}
}  // namespace

Module& Sequential::operator[](size_t i) const { return child_at(*this, i); }
Module& ModuleList::operator[](size_t i) const { return child_at(*this, i); }

bool ModuleDict::contains(const std::string& key) const noexcept {
  return std::any_of(named_children().begin(), named_children().end(), [&](const auto& c) { return c.first == key; });
}

Module& ModuleDict::operator[](const std::string& key) const {
  std::vector<std::string> keys;
  for (const auto& [name, module] : named_children()) {
    if (name == key) return *module;
    keys.push_back(name);
  }
  throw IndexError("ModuleDict has no module \"{}\"; it has {}", key, keys.empty() ? "none" : quoted_list(keys));
}

}  // namespace naru::nn
