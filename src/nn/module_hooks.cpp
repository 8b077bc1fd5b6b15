// Hooks on modules.
#include <algorithm>

#include "naru/autograd.h"
#include "naru/module.h"

namespace naru::nn {

struct Module::Hooks {
  template <class F>
  using List = std::vector<std::pair<int64_t, F>>;
  // Lists are copied before they are run: hooks may add others, or take themselves out.
  List<PreHook> before;
  List<Hook> after;
  List<BackwardHook> backward;
  List<BackwardPreHook> backward_before;
  int64_t next = 0;
};

namespace {

template <class Hooks, class List, class F>
HookHandle added(const std::shared_ptr<Hooks>& hooks, List Hooks::*list, F hook) {
  const int64_t number = hooks->next++;
  (hooks.get()->*list).emplace_back(number, std::move(hook));
  return {number, [weak = std::weak_ptr<Hooks>(hooks), list, number] {
            if (const auto alive = weak.lock()) std::erase_if(alive.get()->*list, [&](const auto& h) { return h.first == number; });
          }};
}

}  // namespace

Tensor Module::call_with_hooks(const Tensor& given) {
  const std::shared_ptr<Hooks> hooks = hooks_;
  Tensor x = given;
  for (const auto before = hooks->before; const auto& [number, hook] : before)
    if (Tensor changed = hook(*this, x); changed.defined()) x = std::move(changed);
  const bool backward = grad_enabled() && (!hooks->backward.empty() || !hooks->backward_before.empty());
  // Gradients are seen on their way through views of the input and the output.
  const auto grad_output = std::make_shared<Tensor>();
  const bool input_wants = backward && x.requires_grad();
  if (input_wants) {
    x = x.view(x.sizes());
    x.register_hook([this, hooks, grad_output](const Tensor& g) {
      Tensor changed = g;
      for (const auto list = hooks->backward; const auto& [number, hook] : list)
        if (Tensor other = hook(*this, changed, *grad_output); other.defined()) changed = std::move(other);
      return changed;
    });
  }
  Tensor y = forward(x);
  for (const auto after = hooks->after; const auto& [number, hook] : after)
    if (Tensor changed = hook(*this, x, y); changed.defined()) y = std::move(changed);
  if (!backward || !y.requires_grad()) return y;
  y = y.view(y.sizes());
  y.register_hook([this, hooks, grad_output, input_wants](const Tensor& g) {
    Tensor changed = g;
    for (const auto list = hooks->backward_before; const auto& [number, hook] : list)
      if (Tensor other = hook(*this, changed); other.defined()) changed = std::move(other);
    *grad_output = changed;
    if (!input_wants)
      for (const auto list = hooks->backward; const auto& [number, hook] : list) hook(*this, Tensor(), changed);
    return changed;
  });
  return y;
}

HookHandle Module::register_forward_pre_hook(PreHook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  return added(hooks_, &Hooks::before, std::move(hook));
}
HookHandle Module::register_forward_hook(Hook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  return added(hooks_, &Hooks::after, std::move(hook));
}
HookHandle Module::register_full_backward_hook(BackwardHook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  return added(hooks_, &Hooks::backward, std::move(hook));
}
HookHandle Module::register_full_backward_pre_hook(BackwardPreHook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  return added(hooks_, &Hooks::backward_before, std::move(hook));
}

}  // namespace naru::nn
