// Loops over host memory (ir/host_loop.h), run immediately on the calling thread and the thread pool by the cpu backend's functions.
#pragma once

#include <atomic>

#include "ir/host_loop.h"

namespace naru::runtime {

// The initial value creates the cpu backend, which replaces the pointer, and calls again, as in runtime/queue/small_work.h.
extern constinit std::atomic<void (*)(const ir::HostLoop&)> run_host_loop;

}  // namespace naru::runtime
