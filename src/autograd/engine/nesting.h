// Nested backward: a hook or a user-defined function that calls backward() itself.
#pragma once

#include <functional>

namespace naru::autograd {

// Calls f. If nesting is so deep that the stack might overflow, runs f on a separate thread with its own stack and waits for it; errors
// propagate to the caller.
void run_nested(const std::function<void()>& f);

}  // namespace naru::autograd
