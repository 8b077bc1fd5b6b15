// Tensor's methods for gradients: requires_grad_, is_leaf, grad, detach_, register_hook, retain_grad.
#include "autograd/graph/batch.h"
#include "autograd/history/accumulate.h"
#include "autograd/history/history.h"
#include "ops/tensor/common.h"

namespace naru {

const Tensor& Tensor::requires_grad_(bool on) const {
  if (on && !is_inexact(dtype()))
    throw RuntimeError("only Tensors of floating point and complex dtype can require gradients (got {})", name_of(dtype()));
  if (on && is_inference() && !is_inference_mode_enabled())
    throw RuntimeError(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. (clone() gives a tensor that may require "
        "it)");
  if (is_batched(*this)) {
    set_batched(*this, batch_parts(*this).value.requires_grad_(on));
    return *this;
  }
  if (!on && !is_leaf())
    throw RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that "
        "doesn't require differentiation use var_no_grad = var.detach().");
  if (on || autograd::meta_of(*this))
    if (is_leaf()) {
      autograd::ensure_meta(*this).requires_grad = on;
      // Without a base of its own, the leaf becomes the base of its later views, and check_in_place detects writes through them.
      if (on) impl_->base = nullptr;
    }
  return *this;
}

bool Tensor::is_leaf() const {
  if (!requires_grad()) return true;
  if (is_batched(*this)) return batch_parts(*this).value.is_leaf();
  return !autograd::meta_of(*this) ? false : !autograd::gradient_edge(*this).node || autograd::meta_of(*this)->grad_fn.get() == nullptr;
}

Tensor Tensor::grad() const {
  autograd::Meta* m = autograd::meta_of(*this);
  if (!m) return {};
  const auto lock = autograd::lock_grad(*m);
  return m->grad;
}

void Tensor::set_grad(const Tensor& g) const {
  if (g.defined()) {
    if (!(g.sizes() == sizes()))
      throw RuntimeError("assigned grad has data of a different size: wanted {}, got {}", sizes().str(), g.sizes().str());
    if (g.device() != device())
      throw RuntimeError("assigned grad has data located on a different device: wanted {}, got {}", device().str(), g.device().str());
    if (g.dtype() != dtype())
      throw RuntimeError("assigned grad has data of a different type: wanted {}, got {}", name_of(dtype()), name_of(g.dtype()));
  } else if (!autograd::meta_of(*this)) {
    return;
  }
  autograd::Meta& m = autograd::ensure_meta(*this);
  Tensor replaced = g;  // declared before the lock, so that it is freed after unlocking
  const auto lock = autograd::lock_grad(m);
  std::swap(m.grad, replaced);
}

std::string Tensor::grad_fn_name() const {
  if (!requires_grad()) return "";
  autograd::gradient_edge(*this);
  const autograd::Meta* m = autograd::meta_of(*this);
  return m && m->grad_fn ? m->grad_fn->name() : "";
}

const Tensor& Tensor::detach_() const {
  ops::require_defined(*this, "detach_", "input");
  if (is_batched(*this)) {
    set_batched(*this, batch_parts(*this).value.detach_());
    return *this;
  }
  if (autograd::Meta* m = autograd::meta_of(*this)) {
    const Ref<autograd::Node> former = std::exchange(m->grad_fn, nullptr);
    autograd::move_retained(*m, former);
    m->requires_grad = false;
  }
  impl_->base = nullptr;
  return *this;
}

int64_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  const autograd::HookPlace place = autograd::add_hook(*this, std::move(hook));
  autograd::Meta& m = *autograd::meta_of(*this);
  if (!m.hooks) m.hooks = std::make_unique<std::vector<std::pair<int64_t, std::weak_ptr<autograd::HookRegistry>>>>();
  m.hooks->emplace_back(place.number, place.list);
  return place.number;
}

void Tensor::remove_hook(int64_t number) const {
  autograd::Meta* m = autograd::meta_of(*this);
  if (!m || !m->hooks) return;
  for (const auto& [n, list] : *m->hooks)
    if (const auto alive = n == number ? list.lock() : nullptr) alive->remove(number);
  std::erase_if(*m->hooks, [&](const auto& h) { return h.first == number; });
}

bool Tensor::retains_grad() const {
  const autograd::Meta* m = autograd::meta_of(*this);
  return m && m->retains_grad;
}
void Tensor::retain_grad() const {
  if (!requires_grad()) throw RuntimeError("can't retain_grad on Tensor that has requires_grad=False");
  const autograd::Edge e = autograd::gradient_edge(*this);
  autograd::Meta& m = *autograd::meta_of(*this);
  if (!m.grad_fn || m.retains_grad) return;
  autograd::Node::Extras& x = e.node->ensure_extras();
  const std::lock_guard lock(x.mutex);
  m.retains_grad = true;
  x.retained.emplace_back(m.output, &m);
}

}  // namespace naru
