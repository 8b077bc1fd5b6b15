// Hooks of modules.
#include <algorithm>

#include "autograd/history/function.h"
#include "naru/autograd.h"
#include "naru/nn/module.h"

namespace naru::nn {

struct Module::Hooks {
  template <class F>
  using List = std::vector<std::pair<int64_t, F>>;
  // Lists are copied before they are run: hooks may add or remove hooks.
  List<ListPreHook> before;
  List<ListHook> after;
  List<ListBackwardHook> backward;
  List<ListBackwardPreHook> backward_before;
  int64_t next = 0;
  Module* module = nullptr;  // null once the module is destroyed: backward may run later
};

// State shared by the backward hooks of one call.
struct Module::HookedCall {
  std::shared_ptr<Hooks> hooks;
  Tensors grad_outputs;
  bool backward = false, input_wants = false;
};

Module::Module() = default;
void Module::keep(Tensors& list, const Tensor& t) { list.push_back(t); }
Module::~Module() {
  if (hooks_ && hooks_->module == this) hooks_->module = nullptr;
}
Module::Module(Module&& o) noexcept { *this = std::move(o); }
Module& Module::operator=(Module&& o) noexcept {
  if (this == &o) return *this;
  parameters_ = std::move(o.parameters_), buffers_ = std::move(o.buffers_), children_ = std::move(o.children_);
  if (hooks_) hooks_->module = nullptr;
  hooks_ = std::move(o.hooks_);
  if (hooks_) hooks_->module = this;
  training_ = o.training_;
  return *this;
}

Module::Hooks& Module::own_hooks() {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  hooks_->module = this;
  return *hooks_;
}

namespace {

using Tensors = Module::Tensors;

template <class Hooks, class List, class F>
HookHandle added(const std::shared_ptr<Hooks>& hooks, List Hooks::*list, F hook) {
  const int64_t number = hooks->next++;
  (hooks.get()->*list).emplace_back(number, std::move(hook));
  return {number, [weak = std::weak_ptr<Hooks>(hooks), list, number] {
            if (const auto alive = weak.lock()) std::erase_if(alive.get()->*list, [&](const auto& h) { return h.first == number; });
          }};
}

// Replaces `list` by what a hook returned; an empty result keeps it.
void replace(Tensors& list, Tensors changed, const Module& module, const char* what) {
  if (changed.empty()) return;
  if (changed.size() != list.size())
    throw RuntimeError("a hook on {} returned {} {}, but there are {}; return an empty list to leave them as they are", module.name(),
                       changed.size(), what, list.size());
  list = std::move(changed);
}

const Tensor& only(const Module& module, const Tensors& list, const char* what) {
  if (list.size() == 1) return list[0];
  throw RuntimeError("a hook on {} takes one tensor, but the call has {} {}: let the hook take, and return, a std::vector<Tensor>",
                     module.name(), list.size(), what);
}
Tensors list_of(Tensor t) { return t.defined() ? Tensors{std::move(t)} : Tensors(); }

// The tensors, or views of them, whose gradients pass through f.
Tensors watched(Tensors list, std::function<Tensors(Tensors)> f) {
  Tensors fixed;
  for (const Tensor& t : list)
    if (t.defined() && !t.requires_grad()) fixed.push_back(t);
  autograd::record_function({.name = "BackwardHookFunction",
                             .inputs = list,
                             .dirty = {},
                             .fixed = std::move(fixed),
                             .saved = {},
                             .materialize = false,
                             .backward = [f = std::move(f)](Tensors grads, autograd::Needed) { return f(std::move(grads)); },
                             .object = nullptr},
                            list);
  return list;
}

bool wants_gradient(const Tensors& list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); });
}

}  // namespace

std::shared_ptr<Module::HookedCall> Module::begin_call(Tensors& inputs) {
  const auto call = std::make_shared<HookedCall>();
  call->hooks = hooks_;
  Hooks& hooks = *call->hooks;
  for (const auto before = hooks.before; const auto& [number, hook] : before) replace(inputs, hook(*this, inputs), *this, "inputs");
  call->backward = grad_enabled() && (!hooks.backward.empty() || !hooks.backward_before.empty());
  call->input_wants = call->backward && wants_gradient(inputs);
  if (call->input_wants)
    inputs = watched(inputs, [call](Tensors grads) {
      if (const auto list = call->hooks->backward; Module* module = call->hooks->module)
        for (const auto& [number, hook] : list) replace(grads, hook(*module, grads, call->grad_outputs), *module, "gradients of inputs");
      call->grad_outputs.clear();
      return grads;
    });
  return call;
}

void Module::end_call(const std::shared_ptr<HookedCall>& call, const Tensors& inputs, Tensors& outputs) {
  for (const auto after = call->hooks->after; const auto& [number, hook] : after)
    replace(outputs, hook(*this, inputs, outputs), *this, "outputs");
  if (!call->backward || !wants_gradient(outputs)) return;
  outputs = watched(outputs, [call, count = inputs.size()](Tensors grads) {
    Module* module = call->hooks->module;
    if (!module) return grads;
    for (const auto list = call->hooks->backward_before; const auto& [number, hook] : list)
      replace(grads, hook(*module, grads), *module, "gradients of outputs");
    if (call->input_wants)
      call->grad_outputs = grads;
    else
      for (const auto list = call->hooks->backward; const auto& [number, hook] : list) hook(*module, Tensors(count), grads);
    return grads;
  });
}

Tensor Module::call_with_hooks(const Tensor& given) {
  Tensors inputs{given};
  const std::shared_ptr<HookedCall> call = begin_call(inputs);
  Tensors outputs{forward(inputs[0])};
  end_call(call, inputs, outputs);
  return outputs[0];
}

HookHandle Module::register_forward_pre_hook(ListPreHook hook) {
  own_hooks();
  return added(hooks_, &Hooks::before, std::move(hook));
}
HookHandle Module::register_forward_hook(ListHook hook) {
  own_hooks();
  return added(hooks_, &Hooks::after, std::move(hook));
}
HookHandle Module::register_full_backward_hook(ListBackwardHook hook) {
  own_hooks();
  return added(hooks_, &Hooks::backward, std::move(hook));
}
HookHandle Module::register_full_backward_pre_hook(ListBackwardPreHook hook) {
  own_hooks();
  return added(hooks_, &Hooks::backward_before, std::move(hook));
}

HookHandle Module::register_forward_pre_hook(PreHook hook) {
  return register_forward_pre_hook(
      ListPreHook([hook = std::move(hook)](Module& m, const Tensors& in) { return list_of(hook(m, only(m, in, "inputs"))); }));
}
HookHandle Module::register_forward_hook(Hook hook) {
  return register_forward_hook(ListHook([hook = std::move(hook)](Module& m, const Tensors& in, const Tensors& out) {
    return list_of(hook(m, only(m, in, "inputs"), only(m, out, "outputs")));
  }));
}
HookHandle Module::register_full_backward_hook(BackwardHook hook) {
  return register_full_backward_hook(ListBackwardHook([hook = std::move(hook)](Module& m, const Tensors& in, const Tensors& out) {
    return list_of(hook(m, only(m, in, "inputs"), only(m, out, "outputs")));
  }));
}
HookHandle Module::register_full_backward_pre_hook(BackwardPreHook hook) {
  return register_full_backward_pre_hook(
      ListBackwardPreHook([hook = std::move(hook)](Module& m, const Tensors& out) { return list_of(hook(m, only(m, out, "outputs"))); }));
}

}  // namespace naru::nn
