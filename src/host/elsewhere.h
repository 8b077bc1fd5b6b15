// Runs a function on another thread while this one waits and looks up from time to time.
#pragma once

#include <functional>

namespace naru::host {

// `look` is called every so many milliseconds until `work` is done; then what `work` has thrown is thrown here.
void run_elsewhere(const std::function<void()>& work, const std::function<void()>& look, int milliseconds);

}  // namespace naru::host
