#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/graph/node.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/nn.h"
#include "nn/text.h"
#include "ops/tensor/common.h"

namespace naru::nn {
namespace {

// Replaces the contents of `t` by those of `source` and keeps the tensor's identity, so every handle to it sees the change. `t` is a leaf before
// and after.
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

// Appends `t` unless it is in `met`.
void add_new(NamedTensors& list, std::unordered_set<const TensorImpl*>& met, const std::string& name, const Tensor& t) {
  if (t.defined() && met.insert(t.impl()).second) list.emplace_back(name, t);
}

std::vector<Tensor> tensors_of(const NamedTensors& named) {
  std::vector<Tensor> list;
  for (const auto& [name, t] : named) list.push_back(t);
  return list;
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

std::string Module::name() const { return "Module"; }
std::string Module::details() const { return ""; }

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
    t.impl()->serves(MemoryRole::Parameter);
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

std::vector<std::shared_ptr<Module>> Module::children() const {
  std::vector<std::shared_ptr<Module>> list;
  for (const auto& [name, child] : children_) list.push_back(child);
  return list;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> list;
  std::unordered_set<const Module*> met;
  walk("", [&](const std::string& prefix, const Module& m) {
    if (met.insert(&m).second) list.emplace_back(prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1), const_cast<Module*>(&m));
  });
  return list;
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> list;
  for (const auto& [name, module] : named_modules()) list.push_back(module);
  return list;
}

namespace {

// Splits "encoder.0.weight" into "encoder.0" and "weight".
std::pair<std::string, std::string> split_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::pair(std::string(), path) : std::pair(path.substr(0, dot), path.substr(dot + 1));
}

}  // namespace

Module& Module::get_submodule(const std::string& path) {
  Module* at = this;
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    const std::string part = path.substr(start, end - start);
    const auto found = std::find_if(at->children_.begin(), at->children_.end(), [&](const auto& c) { return c.first == part; });
    if (found == at->children_.end()) throw ValueError("{} has no module `{}` (of \"{}\")", at->name(), part, path);
    at = found->second.get();
    start = end + 1;
  }
  return *at;
}

Tensor Module::get_parameter(const std::string& path) {
  const auto [where, name] = split_path(path);
  Module& m = get_submodule(where);
  for (const auto& [own, t] : m.parameters_)
    if (own == name) return t;
  throw ValueError("{} has no parameter `{}`", m.name(), name);
}

Tensor Module::get_buffer(const std::string& path) {
  const auto [where, name] = split_path(path);
  Module& m = get_submodule(where);
  for (const Buffer& b : m.buffers_)
    if (b.name == name) return b.tensor;
  throw ValueError("{} has no buffer `{}`", m.name(), name);
}

void Module::replace_module(const std::string& name, std::shared_ptr<Module> module) {
  if (!module) throw TypeError("{}: module '{}' is null", this->name(), name);
  for (auto& [own, child] : children_)
    if (own == name) {
      child = std::move(module);
      return;
    }
  throw ValueError("{} has no module `{}` to be replaced", this->name(), name);
}

void Module::unregister_module(const std::string& name) {
  if (std::erase_if(children_, [&](const auto& c) { return c.first == name; }) == 0)
    throw ValueError("{} has no module `{}`", this->name(), name);
}

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

void Module::announce_load(const NamedTensors& state, const std::string& prefix) {
  before_load(state, prefix);
  for (auto& [name, child] : children_) child->announce_load(state, prefix + name + ".");
}

void Module::become(const Module& other) {
  const auto take = [](const Tensor& own, const Tensor& value) {
    if (!own.defined()) return;
    const DType dtype = is_inexact(value.dtype()) ? own.dtype() : value.dtype();
    adopt(own, value.detach().to(own.device(), dtype, false, false));
  };
  for (size_t i = 0; i < parameters_.size(); ++i) take(parameters_[i].second, other.parameters_[i].second);
  for (size_t i = 0; i < buffers_.size(); ++i) take(buffers_[i].tensor, other.buffers_[i].tensor);
}

void Module::load_state_dict(const NamedTensors& state, bool strict, SourceLocation where) {
  const SourceLocationScope here(where);
  announce_load(state, "");
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

// Copies module by module and name by name, so that non-persistent buffers are included.
void Module::take_state(const Module& from, std::optional<Device> device) {
  const auto same = [](const auto& a, const auto& b, const auto& name_of) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) { return name_of(x) == name_of(y); });
  };
  const auto first = [](const auto& pair) { return pair.first; };
  if (!same(parameters_, from.parameters_, first) || !same(children_, from.children_, first) ||
      !same(buffers_, from.buffers_, [](const Buffer& b) { return b.name; }))
    throw RuntimeError("clone(): a new {} has other parameters, buffers or modules than the one to be cloned", from.name());
  const auto take = [&](const Tensor& own, const Tensor& value) {
    if (own.defined() != value.defined())
      throw RuntimeError("clone(): a new {} has other parameters than the one to be cloned", from.name());
    if (!own.defined()) return;
    adopt(own, value.detach().to(device, {}, false, true));
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    take(parameters_[i].second, from.parameters_[i].second);
    if (Tensor& own = parameters_[i].second; own.defined()) own.requires_grad_(from.parameters_[i].second.requires_grad());
  }
  for (size_t i = 0; i < buffers_.size(); ++i) take(buffers_[i].tensor, from.buffers_[i].tensor);
  for (size_t i = 0; i < children_.size(); ++i) children_[i].second->take_state(*from.children_[i].second, device);
  training_ = from.training_;
}

std::shared_ptr<Module> Module::clone(std::optional<Device> device) const {
  std::shared_ptr<Module> made = without_draws([this] { return remake(); });  // discards the new module's random draws
  const NoGrad off;
  made->take_state(*this, device);
  return made;
}

std::shared_ptr<Module> Module::remake() const {
  throw NotImplementedError(
      "clone() has not been implemented for {}. Subclass naru::nn::Cloneable<{}> instead of naru::nn::Module to inherit the ability to "
      "clone.",
      name(), name());
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

}  // namespace naru::nn
