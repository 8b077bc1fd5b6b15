// The graph that backward walks, as a program may look at it: nodes, where their gradients go, and hooks on them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "naru/hooks.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::autograd {

class Node;

// A share of a node; none for a tensor without history. `->` is the handle itself, so that y.grad_fn()->name() reads as in PyTorch.
class GradFn {
 public:
  GradFn() = default;
  explicit GradFn(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  explicit operator bool() const noexcept { return node_ != nullptr; }
  const GradFn* operator->() const noexcept { return this; }
  friend bool operator==(const GradFn& a, const GradFn& b) noexcept { return a.node_ == b.node_; }

  std::string name() const;  // "AddBackward0"
  // Grows from node to node.
  uint64_t sequence_nr() const;
  // The nodes that the gradients of its inputs go to, each with the number of its output; none where no gradient goes.
  std::vector<std::pair<GradFn, uint32_t>> next_functions() const;
  // The leaf of an AccumulateGrad; undefined otherwise, and where the leaf is gone.
  Tensor variable() const;

  using List = std::vector<Tensor>;
  // Called with the gradients of the node's inputs and of its outputs after it has run; what it returns replaces the former, unless that is empty.
  // RuntimeError, in backward, for another number of gradients, or another shape or type.
  HookHandle register_hook(std::function<List(const List& grad_inputs, const List& grad_outputs)> hook) const;
  // Called with the gradients of the node's outputs before it runs.
  HookHandle register_prehook(std::function<List(const List& grad_outputs)> hook) const;

 private:
  std::shared_ptr<Node> node_;
};

// Calls hook(leaf) when backward has added to the leaf's grad. RuntimeError for a tensor that does not require grad, or is no leaf.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook);

}  // namespace naru::autograd
