// Loops over host memory (ir/host_loop.h), done at once on the calling thread and the pool, by the cpu backend's functions.
#pragma once

#include <atomic>

#include "ir/host_loop.h"

namespace naru::runtime {

// What is there before the cpu backend is made makes it and calls again, as with small work (runtime/small_work.h).
extern constinit std::atomic<void (*)(const ir::HostLoop&)> run_host_loop;

}  // namespace naru::runtime
