// Modules that contain other modules, and the text of modules.
#include <fmt/format.h>

#include <algorithm>

#include "naru/nn/module.h"
#include "nn/text.h"

namespace naru::nn {

std::string number_text(double v) {
  std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string tuple_text(const Dims& d) {
  std::string text;
  for (const int64_t v : d) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return "(" + text + (d.size() == 1 ? ",)" : ")");
}
std::string one_or_tuple(const Dims& d) { return d.size() == 1 ? std::to_string(d[0]) : tuple_text(d); }

std::string quoted_list(const std::vector<std::string>& keys) {
  std::string s;
  for (const std::string& k : keys) s += (s.empty() ? "\"" : ", \"") + k + "\"";
  return s;
}

Sequential::Sequential() = default;
Sequential::Sequential(Sequential&&) = default;
Sequential& Sequential::operator=(Sequential&&) = default;
std::string Sequential::name() const { return "Sequential"; }
size_t Sequential::size() const noexcept { return named_children().size(); }

ModuleList::ModuleList() = default;
std::string ModuleList::name() const { return "ModuleList"; }
size_t ModuleList::size() const noexcept { return named_children().size(); }

ModuleDict::ModuleDict() = default;
std::string ModuleDict::name() const { return "ModuleDict"; }
size_t ModuleDict::size() const noexcept { return named_children().size(); }

ParameterList::ParameterList() = default;
ParameterList::ParameterList(const std::vector<Tensor>& values) {
  for (const Tensor& t : values) push_back(t);
}
std::string ParameterList::name() const { return "ParameterList"; }
void ParameterList::push_back(const Tensor& t) { register_parameter(std::to_string(size()), t); }
size_t ParameterList::size() const { return named_parameters(false).size(); }

ParameterDict::ParameterDict() = default;
std::string ParameterDict::name() const { return "ParameterDict"; }
void ParameterDict::insert(std::string key, const Tensor& t) { register_parameter(std::move(key), t); }
size_t ParameterDict::size() const { return named_parameters(false).size(); }

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& [name, module] : named_children()) y = (*module)(y);
  return y;
}

namespace {

Module& child_at(const Module& list, size_t i) {
  const auto& children = list.named_children();
  if (i >= children.size()) throw IndexError("index {} is out of range: {} has {} modules", i, list.name(), children.size());
  return *children[i].second;
}

// Returns the value for a key. Throws IndexError that lists the existing keys.
template <class Pairs>
const auto& found(const Pairs& pairs, const std::string& key, const char* kind, const char* what) {
  std::vector<std::string> keys;
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
    keys.push_back(name);
  }
  throw IndexError("{} has no {} \"{}\"; it has {}", kind, what, key, keys.empty() ? "none" : quoted_list(keys));
}

template <class Pairs>
bool has(const Pairs& pairs, const std::string& key) noexcept {
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& c) { return c.first == key; });
}

}  // namespace

Module& Sequential::operator[](size_t i) const { return child_at(*this, i); }
Module& ModuleList::operator[](size_t i) const { return child_at(*this, i); }
bool ModuleDict::contains(const std::string& key) const noexcept { return has(named_children(), key); }
Module& ModuleDict::operator[](const std::string& key) const { return *found(named_children(), key, "ModuleDict", "module"); }

Tensor ParameterList::operator[](size_t i) const {
  const NamedTensors all = named_parameters(false);
  if (i >= all.size()) throw IndexError("index {} is out of range: ParameterList has {} parameters", i, all.size());
  return all[i].second;
}
bool ParameterDict::contains(const std::string& key) const { return has(named_parameters(false), key); }
Tensor ParameterDict::operator[](const std::string& key) const {
  const NamedTensors all = named_parameters(false);
  return found(all, key, "ParameterDict", "parameter");
}

std::shared_ptr<Module> Sequential::remake() const {
  auto made = std::make_shared<Sequential>();
  for (const auto& [name, child] : named_children()) made->push_back(name, child->clone());
  return made;
}
std::shared_ptr<Module> ModuleList::remake() const {
  auto made = std::make_shared<ModuleList>();
  for (const auto& [name, child] : named_children()) made->push_back(child->clone());
  return made;
}
std::shared_ptr<Module> ModuleDict::remake() const {
  auto made = std::make_shared<ModuleDict>();
  for (const auto& [name, child] : named_children()) made->insert(name, child->clone());
  return made;
}
std::shared_ptr<Module> ParameterList::remake() const {
  auto made = std::make_shared<ParameterList>();
  for (const auto& [name, t] : named_parameters(false)) made->push_back(t.detach().clone());
  return made;
}
std::shared_ptr<Module> ParameterDict::remake() const {
  auto made = std::make_shared<ParameterDict>();
  for (const auto& [name, t] : named_parameters(false)) made->insert(name, t.detach().clone());
  return made;
}

}  // namespace naru::nn
