// How operators are remembered: the edges that gradients go along, and the nodes that operators and writes leave behind.
#pragma once

#include <bit>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/node.h"

namespace naru::autograd {

// The edge its gradient goes along (a leaf's leads to its accumulator).
Edge gradient_edge(const Tensor& t);

// Where a hook was put, so that it can be taken out without keeping the tensor alive.
struct HookPlace {
  int64_t number = 0;
  std::weak_ptr<HookRegistry> list;
};
// Tensor::register_hook, with the name that errors give the hook and the Python object it calls.
HookPlace add_hook(const Tensor& t, Hook hook, std::string name = "hook", std::shared_ptr<void> object = {});

// What a gradient must be like.
struct GradientLike {
  Dims sizes;
  DType dtype = DType::F32;
  Device device;
  GradientLike() = default;
  explicit GradientLike(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()), device(t.device()) {}
};
// `g` as it must be: summed over broadcast dimensions, converted to the type. Throws RuntimeError, naming the node, where neither helps.
Tensor fit_gradient(Tensor g, const GradientLike& like, const std::string& node, size_t index);
// Throws RuntimeError where a hook replaces a gradient by one of another shape, type or device.
void check_hook_result(const Tensor& before, const Tensor& after, const std::string& hook);

// The edges of `node` are those of `inputs` (undefined or not requiring grad: none).
void connect(Node& node, std::initializer_list<const Tensor*> inputs);
void connect(Node& node, std::span<const Tensor> inputs);

// Records `out` = op(inputs) when one of them requires grad. f(grads, saved): gradients for the inputs, undefined ones counting as none;
// grads[0] is that of out. `saves` are kept for it; mark the result itself by passing `out` in save_out.
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

// The same for several results: grads[i] is that of outs[i], undefined where nothing flows to it. saves come first among the saved tensors, then
// those of `outs` whose bit is set in save_outs.
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

// The gradient of a tensor of base_sizes and base_strides, from that of a view of its memory: g's sizes, these strides, `shift` elements on.
Tensor gradient_of_base(const Tensor& g, const Dims& strides, int64_t shift, const Dims& base_sizes, const Dims& base_strides);

// Before a write to `target`, recorded or not, and after the writer's own node has saved its operands: saved values that outlive writes
// get a copy of that memory.
void copy_kept(const Tensor& target);
inline void before_write(const Tensor& target) {
  if (uncopied_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    copy_kept(target);
}
// After the write: `node`, whose first next edge is the target's old one, becomes the history of the target, and of the base it is a view of.
void rebase_history(const Tensor& target, Ref<Node> node);
// A view follows the history of its base: gives it a new grad_fn where the base has been written in place since.
void follow_base(const Tensor& view, Meta& m);
// After a view took another geometry: its history is made anew.
void leave_history(const Tensor& view);

}  // namespace naru::autograd
