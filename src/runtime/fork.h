// Forks: a child has only the thread that forked, so what other threads hold locked would stay locked there for ever.
#pragma once

#include <mutex>

namespace naru::runtime {

// From now on `mutex` is held by the forking thread while the process forks, and free afterwards in both processes. It
// must live as long as the process, or until released with forget_at_fork; nothing else may be locked while it is held.
void hold_at_fork(std::mutex& mutex);
void forget_at_fork(std::mutex& mutex);

// How often the process was forked on the way here: differs between a process and its children, and is cheaper to ask for than its number.
int fork_generation() noexcept;

}  // namespace naru::runtime
