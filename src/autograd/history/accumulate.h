// AccumulateGrad: the graph's final node, which adds gradients to a leaf's grad. A leaf owns its node from its first use in a history on;
// graphs share the node. The node does not keep the leaf alive.
#pragma once

#include <mutex>

#include "autograd/graph/node.h"

namespace naru::autograd {

// Locks `m`, except in a single-threaded process, where locking would cost more than the guarded work. Code that runs under the lock must
// not start a thread that may lock it too.
inline std::unique_lock<std::mutex> lock_among_threads(std::mutex& m) {
  return single_threaded() ? std::unique_lock<std::mutex>() : std::unique_lock(m);
}

class AccumulateGrad final : public LeafNode {
 public:
  explicit AccumulateGrad(Meta& leaf) : LeafNode("AccumulateGrad"), leaf_(&leaf) {}
  std::vector<Tensor> apply(std::vector<Tensor> grads, Needed) override;
  // The leaf; undefined if it was destroyed.
  Tensor variable() const;
  void forget(const Meta& leaf) noexcept override;
  // Rebinds the node to the state `to`, and moves the grad of `from` there.
  void move(Meta& from, Meta& to);

  mutable std::mutex mutex;  // guards the leaf's grad, and leaf_

 private:
  Meta* leaf_;
};

// The AccumulateGrad node of a leaf.
AccumulateGrad& accumulator_of(Meta& leaf);
// Hold it while reading or replacing a tensor's grad.
std::unique_lock<std::mutex> lock_grad(Meta& m);
// Returns a tensor with the elements of `source` that takes over t's grad, history and hooks. `t`, which graphs may still reference, keeps
// its elements and passes its gradients on as before.
Tensor take_over(const Tensor& t, const Tensor& source);

}  // namespace naru::autograd
