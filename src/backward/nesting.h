// Backward within backward: a hook or a function of the user's that calls backward() itself.
#pragma once

#include <functional>

namespace naru::autograd {

// Calls f. Where so many calls are nested that the stack might end, on a thread with a stack of its own, which is waited for; errors come
// through.
void run_nested(const std::function<void()>& f);

}  // namespace naru::autograd
