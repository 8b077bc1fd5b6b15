// The registry of operators and classes.
#include "naru/torch/registry.h"

#include <mutex>
#include <typeinfo>

#include "naru/autograd.h"

namespace naru::library {
namespace {

struct Operator {
  bool defined = false;
  std::map<std::string, Function> kernels;  // by dispatch key
};

struct Registry {
  std::mutex lock;
  std::map<std::string, Operator> operators;
  std::map<std::string, std::string> classes;  // by the C++ type's name
  std::vector<Registration> fresh;
};

// Never destroyed: a library's static objects may outlive this one's.
Registry& registry() {
  static Registry* const one = new Registry;
  return *one;
}

thread_local bool below = false;

std::string without_overload(const std::string& name) { return name.substr(0, name.find('.')); }

// "CPU" for a device "cpu", as dispatch keys have it.
std::string key_of(Device device) {
  if (device.is_meta()) return "Meta";
  std::string key(name_of(device.type()));
  for (char& c : key) c = static_cast<char>(c - 'a' + 'A');
  return key;
}

const Tensor* first_tensor(const IValue& v) {
  if (const auto* t = v.get_if<Tensor>()) return t;
  const auto* list = v.get_if<IValue::List>();
  if (const auto* tuple = v.get_if<IValue::Tuple>()) list = &tuple->values;
  if (list)
    for (const IValue& each : *list)
      if (const Tensor* t = first_tensor(each)) return t;
  return nullptr;
}

std::string keys_of(const Operator& op) {
  std::string text;
  for (const auto& [key, function] : op.kernels) text += (text.empty() ? "" : ", ") + key;
  return text.empty() ? "none" : text;
}

// The function for a call, and whether it runs without recording history.
std::pair<Function, bool> kernel_for(const Operator& op, const std::string& name, const std::string& device) {
  const auto find = [&](const std::string& key) -> const Function* {
    const auto at = op.kernels.find(key);
    return at == op.kernels.end() ? nullptr : &at->second;
  };
  if (!below)
    for (const std::string& key : {"Autograd" + device, std::string("Autograd")})
      if (const Function* f = find(key)) return {*f, false};
  for (const std::string& key : {device, std::string("CompositeExplicitAutograd")})
    if (const Function* f = find(key)) return {*f, true};
  if (const Function* f = find("CompositeImplicitAutograd")) return {*f, false};
  throw NotImplementedError(
      "Could not run '{}' with arguments from the '{}' backend: no function was registered for it; there are: {}. Add one "
      "with TORCH_LIBRARY_IMPL or torch.library.impl",
      name, device, keys_of(op));
}

}  // namespace

void define_operator(const std::string& space, const std::string& schema) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  const size_t parenthesis = schema.find('(');
  std::string name = schema.substr(0, parenthesis);
  while (!name.empty() && name.back() == ' ') name.pop_back();
  while (!name.empty() && name.front() == ' ') name.erase(0, 1);
  if (const size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  const std::string full = space + "::" + without_overload(name);
  if (parenthesis == std::string::npos) {
    r.fresh.push_back({Registration::Kind::Error,
                       full,
                       "m.def(\"" + schema + "\"): wanted a schema such as \"" + schema + "(Tensor x) -> Tensor\", or a function as well",
                       {}});
    return;
  }
  Operator& op = r.operators[full];
  if (op.defined) {
    r.fresh.push_back({Registration::Kind::Error,
                       full,
                       "Tried to register an operator (" + full + schema.substr(parenthesis) +
                           ") with the same name and overload name multiple times. Each overload's schema should only be registered with a "
                           "single call to def().",
                       {}});
    return;
  }
  op.defined = true;
  r.fresh.push_back({Registration::Kind::Operator, full, schema.substr(parenthesis), {}});
}

void add_kernel(const std::string& space, const std::string& name, const std::string& key, Function function) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  const size_t colons = name.rfind("::");
  const std::string full = space + "::" + without_overload(colons == std::string::npos ? name : name.substr(colons + 2));
  r.operators[full].kernels[key] = function;
  r.fresh.push_back({Registration::Kind::Kernel, full, key, std::move(function)});
}

void define_class(const std::string& space, const std::string& name, const char* type_name) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  const std::string full = space + "::" + name;
  r.classes[type_name] = full;
  r.fresh.push_back({Registration::Kind::Class, full, "", {}});
}

void add_method(const std::string& space, const std::string& name, const std::string& method, Function function, bool is_static) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  r.fresh.push_back({Registration::Kind::Method, space + "::" + name, method, std::move(function), is_static});
}

std::string class_of(const CustomClassHolder& object) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  const auto at = r.classes.find(typeid(object).name());
  return at == r.classes.end() ? std::string() : at->second;
}

bool has_operator(const std::string& name) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  const auto at = r.operators.find(name);
  return at != r.operators.end() && at->second.defined;
}

IValue call_operator(const std::string& name, Stack arguments) {
  if (!has_operator(name)) throw RuntimeError("Could not find schema for {}: no library that was loaded defines it", name);
  const Tensor* tensor = nullptr;
  for (const IValue& v : arguments)
    if ((tensor = first_tensor(v))) break;
  std::pair<Function, bool> kernel;
  {
    Registry& r = registry();
    const std::lock_guard held(r.lock);
    kernel = kernel_for(r.operators[name], name, tensor && tensor->defined() ? key_of(tensor->device()) : "CPU");
  }
  if (!kernel.second) return kernel.first(name.c_str(), arguments);
  const NoGrad off;
  return kernel.first(name.c_str(), arguments);
}

bool below_autograd() noexcept { return below; }

bool set_below_autograd(bool on) noexcept { return std::exchange(below, on); }

std::vector<Registration> take_registrations() {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  return std::exchange(r.fresh, {});
}

}  // namespace naru::library
