// Runs a function on another thread while the calling thread waits and polls.
#pragma once

#include <functional>

namespace naru::cpu {

// Calls `look` every `milliseconds` until `work` is done, then rethrows what `work` has thrown.
void run_on_helper_thread(const std::function<void()>& work, const std::function<void()>& look, int milliseconds);

}  // namespace naru::cpu
