// The backward pass that is running on this thread, for queries by hooks.
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

}  // namespace naru::autograd
