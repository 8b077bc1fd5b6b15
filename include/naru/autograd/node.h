// Read access to the autograd graph: nodes, their edges, and hooks on them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "naru/autograd/hooks.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::autograd {

class Node;

// A shared reference to a node; null for a tensor without history. `->` returns the handle itself, so y.grad_fn()->name() reads as in
// PyTorch.
class GradFn {
 public:
  GradFn() = default;
  explicit GradFn(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  explicit operator bool() const noexcept { return node_ != nullptr; }
  const GradFn* operator->() const noexcept { return this; }
  friend bool operator==(const GradFn& a, const GradFn& b) noexcept { return a.node_ == b.node_; }

  std::string name() const;  // "AddBackward0"
  // Increases from node to node in order of creation.
  uint64_t sequence_nr() const;
  // The edges of the node's inputs: the next node and its output's index; a null node if no gradient flows.
  std::vector<std::pair<GradFn, uint32_t>> next_functions() const;
  // The leaf of an AccumulateGrad node; undefined for other nodes, and if the leaf no longer exists.
  Tensor variable() const;

  using List = std::vector<Tensor>;
  // Called after the node has run, with the gradients of its inputs and of its outputs. A non-empty result replaces the gradients of the
  // inputs. During backward, throws RuntimeError if the result has another number of gradients, or another shape or dtype.
  HookHandle register_hook(std::function<List(const List& grad_inputs, const List& grad_outputs)> hook) const;
  // Called before the node runs, with the gradients of its outputs.
  HookHandle register_prehook(std::function<List(const List& grad_outputs)> hook) const;

 private:
  std::shared_ptr<Node> node_;
};

// Calls hook(leaf) after backward has accumulated into the leaf's grad. Throws RuntimeError if the tensor does not require grad or is not a
// leaf.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook);

}  // namespace naru::autograd
