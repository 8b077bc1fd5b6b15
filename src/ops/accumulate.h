// AccumulateGrad: the node at the end of the graph that adds gradients to a leaf's grad. A leaf owns its node from the first time it takes part
// in a history; graphs share it. The node does not keep the leaf alive.
#pragma once

#include <mutex>

#include "autograd/node.h"

namespace naru::autograd {

// `m`, locked; left open in a process without other threads, where locking takes longer than what it guards. What is done under it starts no
// thread that could come here.
inline std::unique_lock<std::mutex> lock_among_threads(std::mutex& m) {
  return single_threaded() ? std::unique_lock<std::mutex>() : std::unique_lock(m);
}

class AccumulateGrad final : public LeafNode {
 public:
  explicit AccumulateGrad(Meta& leaf) : LeafNode("AccumulateGrad"), leaf_(&leaf) {}
  std::vector<Tensor> apply(std::vector<Tensor> grads) override;
  // The leaf; undefined if it is gone.
  Tensor variable() const;
  void forget(const Meta& leaf) noexcept override;
  // The state of the leaf is `to` from now on, which gets the grad of `from`.
  void move(Meta& from, Meta& to);

  mutable std::mutex mutex;  // guards the leaf's grad, and which state is the leaf's

 private:
  Meta* leaf_;
};

// The node of a leaf.
AccumulateGrad& accumulator_of(Meta& leaf);
// Held while a tensor's grad is read or replaced.
std::unique_lock<std::mutex> lock_grad(Meta& m);
// A tensor with the elements of `source` and t's place in autograd: its grad, history and hooks. `t`, which graphs may hold on to, keeps its
// elements and the way its gradients go.
Tensor take_over(const Tensor& t, const Tensor& source);

}  // namespace naru::autograd
