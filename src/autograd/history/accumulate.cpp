#include "autograd/history/accumulate.h"

#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"

namespace naru::autograd {
namespace {

// True if `g` has the strides of a leaf's first gradient: the leaf's strides if those are dense, else row-major.
bool lies_as(const TensorImpl& g, const TensorImpl& leaf) {
  if (!ops::is_dense(leaf.sizes, leaf.strides)) return g.contiguous;
  for (size_t i = 0; i < leaf.sizes.size(); ++i)
    if (leaf.sizes[i] != 1 && leaf.strides[i] != g.strides[i]) return false;
  return true;
}
Tensor laid_as(const Tensor& g, const TensorImpl& leaf) {
  const Options options(g.dtype(), g.device());
  const Tensor own =
      ops::is_dense(leaf.sizes, leaf.strides) ? empty_strided(leaf.sizes, leaf.strides, options) : empty(leaf.sizes, options);
  return own.copy_(g);
}

// Adds g to the leaf's grad. `replaced` receives the old grad, so that the caller frees it without the lock.
void add_gradient(Meta& m, Tensor g, Tensor& replaced) {
  const TensorImpl& leaf = *m.owner;
  if (!(g.sizes() == leaf.sizes) || g.impl()->storage->device != leaf.storage->device)
    throw RuntimeError(
        "a leaf of shape {} on {} can't take a gradient of shape {} on {}: its data was replaced (x.data = ...) between forward and "
        "backward",
        leaf.sizes.str(), leaf.storage->device.is_cpu() ? "cpu" : leaf.storage->device.str(), g.sizes().str(), g.device().str());
  if (const DType type = leaf.dtype; g.dtype() != type) g = ops::gradient_as(g, type);
  if (!m.grad.defined()) {
    // Reuse a gradient that has no other owner; otherwise give the leaf a copy.
    if (ops::has_sparse_form(g)) {
      m.grad = grad_enabled() || g.impl()->use_count() == 1 ? std::move(g) : g.detach();
    } else {
      const bool sole = g.impl()->use_count() == 1 && g.impl()->storage->use_count() == 1 && !g.impl()->base;
      m.grad = sole && lies_as(*g.impl(), leaf) ? std::move(g) : laid_as(g, leaf);
    }
    m.grad.impl()->serves(MemoryRole::Gradient);
  } else if (grad_enabled()) {
    replaced = std::move(m.grad);
    m.grad = ops::add_gradients(replaced, g);
  } else if (ops::has_sparse_form(m.grad)) {
    replaced = std::move(m.grad);
    m.grad = ops::add_gradients(replaced, g);
  } else {
    m.grad.add_(g);
  }
}

}  // namespace

std::vector<Tensor> AccumulateGrad::apply(std::vector<Tensor> grads, Needed) {
  Tensor g = std::move(grads[0]), replaced;
  grads.clear();  // returned empty, so that the next node can reuse its memory
  if (!g.defined()) return grads;
  {
    const auto lock = lock_among_threads(mutex);
    if (!leaf_ || !leaf_->requires_grad || leaf_->grad_fn) return grads;
    add_gradient(*leaf_, std::move(g), replaced);
  }
  if (const Extras* x = extras()) [[unlikely]]
    if (const auto hooks = x->accumulated->entries())
      if (const Tensor leaf = variable(); leaf.defined())
        for (const auto& hook : *hooks) hook.call(leaf);
  return grads;
}

Tensor AccumulateGrad::variable() const {
  const auto lock = lock_among_threads(mutex);
  return leaf_ && leaf_->owner->try_retain() ? Tensor(leaf_->owner) : Tensor();
}

void AccumulateGrad::forget(const Meta& leaf) noexcept {
  const auto lock = lock_among_threads(mutex);
  if (leaf_ == &leaf) leaf_ = nullptr;
}

void AccumulateGrad::move(Meta& from, Meta& to) {
  const auto lock = lock_among_threads(mutex);
  to.grad = std::move(from.grad);
  if (leaf_ == &from) leaf_ = &to;
}

AccumulateGrad& accumulator_of(Meta& leaf) {
  if (LeafNode* a = leaf.accumulator.load(std::memory_order_acquire)) return static_cast<AccumulateGrad&>(*a);
  if (leaf.owner->special & kBatched) throw batching::NoBatchingRule("a derivative of an operator");  // the value has the history
  leaf.owner->observe();
  Ref<AccumulateGrad> made = make_ref<AccumulateGrad>(leaf);
  LeafNode* other = nullptr;
  if (leaf.accumulator.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel)) return *made.leak();
  return static_cast<AccumulateGrad&>(*other);
}

std::unique_lock<std::mutex> lock_grad(Meta& m) {
  if (m.requires_grad && !m.grad_fn) return lock_among_threads(accumulator_of(m).mutex);
  if (m.retains_grad && m.grad_fn)
    if (Node::Extras* x = m.grad_fn->extras()) return std::unique_lock(x->mutex);
  return {};
}

Tensor take_over(const Tensor& t, const Tensor& source) {
  const TensorImpl& from = *source.impl();
  auto* impl = new TensorImpl(from.storage, from.dtype);
  Tensor made(impl);
  impl->set_geometry(from.sizes, from.strides, from.offset);
  impl->origin = from.origin;
  if (from.parts) impl->set_parts(from.parts, from.special & kHasParts);
  if (const Storage* const s = t.impl()->storage.get(); s && s->role.load(std::memory_order_relaxed) == MemoryRole::Parameter)
    impl->serves(MemoryRole::Parameter);
  Meta* old = meta_of(t);
  if (!old) return made;
  Meta& m = ensure_meta(made);
  m.requires_grad = old->requires_grad;
  m.grad_fn = old->grad_fn;
  m.output = old->output;
  m.hooks = std::move(old->hooks);
  if (LeafNode* a = old->accumulator.load(std::memory_order_acquire)) {
    a->retain();
    impl->observe();
    m.accumulator.store(a, std::memory_order_relaxed);
    static_cast<AccumulateGrad*>(a)->move(*old, m);
  } else if (old->retains_grad) {
    Node::Extras& x = old->grad_fn->ensure_extras();
    const std::lock_guard lock(x.mutex);
    for (auto& [slot, meta] : x.retained)
      if (meta == old) meta = &m;
    m.grad = std::move(old->grad);
    m.retains_grad = std::exchange(old->retains_grad, false);
  } else {
    m.grad = std::move(old->grad);
  }
  return made;
}

}  // namespace naru::autograd
