// Nodes of the backward graph: what an operator leaves behind so that gradients find their way back.
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/tensor.h"

namespace naru::autograd {

class Node;

// Where a gradient goes: input number `slot` of `node`; nowhere if node is null.
struct Edge {
  Ref<Node> node;
  uint32_t slot = 0;
};

using Hook = std::function<Tensor(const Tensor&)>;

class Node : public RefCounted<Node> {
 public:
  explicit Node(const char* name);
  virtual ~Node();
  // From the gradients of the node's outputs (undefined = zero) to those of its inputs, one for each of next().
  virtual std::vector<Tensor> apply(std::vector<Tensor> grads) = 0;
  // Frees what was saved; a second backward through the node is then an error.
  virtual void release_saved() {}

  virtual std::string name() const { return name_; }
  uint64_t sequence() const noexcept { return sequence_; }
  using Edges = SmallVector<Edge, 3>;
  Edges& next() noexcept { return next_; }
  uint32_t outputs = 1;
  // What few nodes have.
  struct Extras {
    // Hooks on the gradient of output `first`, by number; run before apply, in the order of their numbers.
    std::map<std::pair<uint32_t, int64_t>, Hook> hooks;
    // Tensors (output, impl) whose grad is kept though they are no leaves.
    std::vector<std::pair<uint32_t, TensorImpl*>> retained;
  };
  std::unique_ptr<Extras> extras;
  Extras& ensure_extras() {
    if (!extras) extras = std::make_unique<Extras>();
    return *extras;
  }

  // Of the backward pass that runs through the node now (see engine.cpp).
  struct Visit {
    std::atomic<const void*> pass{nullptr};
    int missing = 0;  // gradients still to come
    bool queued = false;
    Tensor grad;               // the sum of those that came, of output 0
    std::vector<Tensor> more;  // of the outputs from 1 on
  } visit;

  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }

 private:
  const char* name_;
  uint64_t sequence_;
  Edges next_;
};

struct Meta : AutogradMeta {
  TensorImpl* owner = nullptr;
  bool requires_grad = false;  // leaves only
  bool retains_grad = false;
  Tensor grad;
  Ref<Node> grad_fn;                               // null for leaves
  uint32_t output = 0;                             // which output of grad_fn
  Node* accumulator = nullptr;                     // leaves: the node that adds to grad, while one lives (not owned)
  uint64_t history = 0;                            // counts in-place changes of the history (base: made; view: seen)
  std::unique_ptr<std::map<int64_t, Hook>> hooks;  // leaves
  int64_t next_hook = 0;
  ~Meta() override;
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

Meta* meta_of(const Tensor& t) noexcept;  // null if none
Meta& ensure_meta(const Tensor& t);
// Does the tensor take part in differentiation?
bool requires_grad(const Tensor& t) noexcept;
// The edge its gradient goes along (a leaf's leads to its accumulator).
Edge gradient_edge(const Tensor& t);

// A tensor kept for backward, with the version it had.
class Saved {
 public:
  Saved() = default;
  // output_of_this_node: the tensor is a result of the node that saves it (a cycle otherwise).
  Saved(const Tensor& t, bool output_of_this_node = false, uint32_t output = 0);
  // Throws RuntimeError naming the operation if the tensor was written in place since, or was released.
  Tensor get(Node* self) const;
  void release() {
    tensor_ = {};
    released_ = true;
  }

 private:
  Tensor tensor_;
  uint32_t version_ = 0, output_ = 0;
  bool is_output_ = false, released_ = false, undefined_ = true;
};

// A node whose backward is a function of the gradients and the saved tensors.
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, F f) : Node(name), f_(std::move(f)) {}
  std::vector<Saved> saved;
  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    bool any = false;
    for (const Tensor& g : grads) any |= g.defined();
    if (!any) return std::vector<Tensor>(next().size());
    std::vector<Tensor> values;
    values.reserve(saved.size());
    for (const Saved& s : saved) values.push_back(s.get(this));
    return f_(grads, values);
  }
  void release_saved() override {
    for (Saved& s : saved) s.release();
  }

 private:
  F f_;
};

// Whether an operator over these tensors must record itself.
bool recording(std::initializer_list<const Tensor*> inputs) noexcept;
bool recording(std::span<const Tensor> inputs) noexcept;

// Makes `node` the history of `out`, its next edges being those of `inputs` (undefined or not requiring: none).
void set_history(const Tensor& out, Ref<Node> node, uint32_t output = 0);
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
  for (const Tensor* t : saves) node->saved.emplace_back(*t);
  if (save_out) node->saved.emplace_back(out, true);
  set_history(out, Ref<Node>(node));
  return out;
}

// The gradient of a tensor of base_sizes and base_strides, from that of a view of its memory: g's sizes, these strides, `shift` elements on.
Tensor gradient_of_base(const Tensor& g, const Dims& strides, int64_t shift, const Dims& base_sizes, const Dims& base_strides);

// In place. Before the write: throws RuntimeError if `target` is a leaf that requires grad (or a view of one) and recording is on.
void check_in_place(const Tensor& target, const char* op);
// After the write: `node`, whose first next edge is the target's old one, becomes the history of the target, and of the base it is a view of.
void rebase_history(const Tensor& target, Ref<Node> node);

}  // namespace naru::autograd
