// Recording of history: the edges that gradients follow, and the nodes that operators and in-place writes create.
#pragma once

#include <bit>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/graph/node.h"

namespace naru::autograd {

// Returns the edge that t's gradient follows: to its grad_fn, or to a leaf's AccumulateGrad node. Null if t does not require grad.
Edge gradient_edge(const Tensor& t);

// A registered hook, for its removal. Does not keep the tensor alive.
struct HookPlace {
  int64_t number = 0;
  std::weak_ptr<HookRegistry> list;
};
// Tensor::register_hook. `name` is for error messages; `object` is the Python object that the hook calls, if any.
HookPlace add_hook(const Tensor& t, Hook hook, std::string name = "hook", std::shared_ptr<void> object = {});

// Makes `g` fit: sums it over broadcast dimensions, converts it to the dtype, and moves it to the device if it is 0-d. If it still does not fit,
// throws RuntimeError with the node's name and `index`.
Tensor fit_gradient(Tensor g, const TensorLike& like, const std::string& node, size_t index);
// Throws RuntimeError if a hook replaced a gradient by one of another shape, dtype or device.
void check_hook_result(const Tensor& before, const Tensor& after, const std::string& hook);

// a + b, where an undefined one counts as zero.
inline Tensor added(const Tensor& a, const Tensor& b) { return !a.defined() ? b : b.defined() ? a + b : a; }

// Marks y's node: writes to what it saved of its inputs do not matter, as PyTorch's node saves a value of its own.
Tensor keeping_saved(Tensor y);

// Appends to `node` the edge of each input; a null edge for an input that is undefined or does not require grad.
void connect(Node& node, std::initializer_list<const Tensor*> inputs);
void connect(Node& node, std::span<const Tensor> inputs);

// Records `out` = op(inputs) if one of the inputs requires grad. f(grads, saved), or f(grads, saved, needed) where gradients are costly by
// themselves, returns the gradients of the inputs (undefined: zero, or not needed); grads[0] is the gradient of out. `saved` holds `saves`,
// followed by the result if save_out is set.
template <class F>
Tensor record(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs, std::initializer_list<const Tensor*> saves, F f,
              bool save_out = false) {
  if (!recording(inputs)) return out;
  auto node = make_ref<FunctionNode<F>>(name, std::move(f));
  connect(*node, inputs);
  node->saved.reserve(saves.size() + save_out);
  for (const Tensor* t : saves) node->saved.emplace_back(*t);
  if (save_out) node->saved.emplace_back(out, true);
  set_history(out, Ref<Node>(node));
  return out;
}

// The same for several results: grads[i] is the gradient of outs[i], undefined if it has none. `saved` holds `saves`, followed by the results whose
// bit is set in save_outs.
template <class F>
void record_all(std::initializer_list<const Tensor*> outs, const char* name, std::initializer_list<const Tensor*> inputs,
                std::initializer_list<const Tensor*> saves, F f, unsigned save_outs = 0) {
  if (!recording(inputs)) return;
  auto node = make_ref<FunctionNode<F>>(name, std::move(f));
  connect(*node, inputs);
  node->outputs = static_cast<uint32_t>(outs.size());
  node->saved.reserve(saves.size() + static_cast<size_t>(std::popcount(save_outs)));
  for (const Tensor* t : saves) node->saved.emplace_back(*t);
  uint32_t number = 0;
  for (const Tensor* out : outs) {
    if (save_outs >> number & 1) node->saved.emplace_back(*out, true, number);
    set_history(*out, Ref<Node>(node), number++);
  }
}

// Returns the gradient of a base with base_sizes and base_strides, given the gradient g of a view with g's sizes and `strides`. The view's first
// element is `shift` elements after the base's; `shift` may be negative.
Tensor gradient_of_base(const Tensor& g, const Dims& strides, int64_t shift, const Dims& base_sizes, const Dims& base_strides);

// Call before a write to `target`, recorded or not, but after the writer's own node has saved its operands. Copies the kept tensors (kept.h) that
// use target's storage.
void copy_kept(const Tensor& target);
inline void before_write(const Tensor& target) {
  if (uncopied_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    copy_kept(target);
}
// Call after the write. Makes `node` the history of the target, and of its base if it is a view. node's first edge must be the target's old history.
void rebase_history(const Tensor& target, Ref<Node> node);
// Gives a view a new grad_fn if its base was written in place since the view's last update.
void follow_base(const Tensor& view, Meta& m);
// Call after a view's geometry was changed in place. Derives its grad_fn from the base again.
void leave_history(const Tensor& view);

}  // namespace naru::autograd
