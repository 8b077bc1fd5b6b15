// The backward pass that is running on this thread, for queries by hooks; the mode that derivatives are computed in.
#pragma once

#include <cstdint>

#include "autograd/graph/node.h"

namespace naru::autograd {

// Its number, counted from 1; 0 outside of backward. A nested pass has its own number.
uint64_t current_backward() noexcept;
// True if the pass runs `node`, or captures its gradients. RuntimeError outside of backward.
bool backward_reaches(Node& node);

// Whether the pass computes only the gradients of given inputs (backward(inputs=...)); whether it keeps the graph. False outside of
// backward.
bool backward_has_inputs() noexcept;
bool backward_keeps_graph() noexcept;

// Switches recording on or off for what the engine itself computes, tangents or not.
class GradMode {
 public:
  explicit GradMode(bool on) : before_(set_grad_enabled(on)), only_(std::exchange(tangents_only, false)) {}
  ~GradMode() { set_grad_enabled(before_), tangents_only = only_; }
  GradMode(const GradMode&) = delete;

 private:
  bool before_, only_;
};

}  // namespace naru::autograd
