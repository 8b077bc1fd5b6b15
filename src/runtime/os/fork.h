// Handlers for fork(): a child has only the forking thread, so a lock that another thread holds would stay locked there forever.
#pragma once

#include <mutex>

namespace naru::runtime {

// From now on the forking thread holds `mutex` while the process forks, and it is unlocked afterwards in both processes. It must live as
// long as the process, or until forget_at_fork. No other lock may be acquired while it is held.
void hold_at_fork(std::mutex& mutex);
void forget_at_fork(std::mutex& mutex);

// Number of forks between the first process and this one. Differs between a process and its children, and is cheaper than getpid().
int fork_generation() noexcept;

}  // namespace naru::runtime
