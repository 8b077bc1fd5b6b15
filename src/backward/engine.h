// The backward pass under way on this thread, as hooks may ask for it.
#pragma once

#include <cstdint>

#include "autograd/node.h"

namespace naru::autograd {

// Its number, counted from 1; 0 outside of backward. A pass within a pass has a number of its own.
uint64_t current_backward() noexcept;
// Whether it runs `node`, or gathers its gradients. RuntimeError outside of backward.
bool backward_reaches(Node& node);

// Whether it gathers the gradients of named inputs only; whether the graph is kept for another one. False outside of backward.
bool backward_has_inputs() noexcept;
bool backward_keeps_graph() noexcept;

}  // namespace naru::autograd
