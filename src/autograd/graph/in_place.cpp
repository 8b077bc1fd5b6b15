// In-place writes: which of them must be recorded, and which are errors.
#include "autograd/graph/node.h"

namespace naru::autograd {
namespace {

bool is_leaf_that_requires_grad(const AutogradMeta* meta) {
  const auto* m = static_cast<const Meta*>(meta);
  return m && m->requires_grad && !m->grad_fn;
}

}  // namespace

void throw_untracked(const Tensor& view, bool indirect) {
  const char* what = indirect ? "its base or another view of its base has been modified inplace" : "is being modified inplace";
  if (view.impl()->view_kind == ViewKind::OfFunction) {
    const Meta* m = meta_of(view);
    const std::string name = m && m->grad_fn ? m->grad_fn->name() : "a custom Function";
    throw RuntimeError(
        "Output {} of {} is a view and {}. This view was created inside a custom Function (or because an input was returned as-is) and the "
        "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, leading to "
        "incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.",
        m ? m->output : 0, name, what);
  }
  throw RuntimeError(
      "A view was created in no_grad mode and {} with grad mode enabled. Given that this use case is ambiguous and error-prone, it is "
      "forbidden. You can clarify your code by moving both the view and the inplace either both inside the no_grad block (if you don't "
      "want "
      "the inplace to be tracked) or both outside (if you want the inplace to be tracked).",
      what);
}

bool recording_write(const Tensor& target) noexcept {
  if (!grad_enabled()) return false;
  if (requires_grad(target)) return true;
  if (tangents_only) return false;
  // The view may have been made before its base required grad.
  if (!target.impl()->base || !is_inexact(target.dtype())) return false;
  const auto* b = static_cast<const Meta*>(target.impl()->base->autograd.get());
  return b && (b->requires_grad || b->grad_fn);
}

void check_in_place(const Tensor& target, const char* op) {
  if (!grad_enabled()) return;
  const TensorImpl& t = *target.impl();
  // Tangents also flow through views made in no-grad mode.
  if (t.base && t.view_kind != ViewKind::Tracked && !(t.view_kind == ViewKind::MadeWithoutGrad && tangents_carried))
    throw_untracked(target, false);
  if (is_leaf_that_requires_grad(t.autograd.get()))
    throw RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation. ({}: write under no_grad(), or use the "
        "out-of-place form)",
        op);
  if (t.base && is_leaf_that_requires_grad(t.base->autograd.get()))
    throw RuntimeError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation. ({}: write under no_grad(), "
        "or use the out-of-place form)",
        op);
}

void see_history(const Tensor& view) {
  const uint64_t now = static_cast<const Meta&>(*view.impl()->base->autograd).history.load(std::memory_order_acquire);
  if (now != 0) ensure_meta(view).history.store(now, std::memory_order_relaxed);
}

}  // namespace naru::autograd
