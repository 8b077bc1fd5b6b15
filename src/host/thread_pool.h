// The one thread pool of the host backends.
#pragma once

#include <cstdint>
#include <functional>

namespace naru::host {

// Threads that take part, the caller included. Default: NARU_NUM_THREADS, else OMP_NUM_THREADS, else the processors
// this process may use (affinity mask and cgroup quota).
int num_threads() noexcept;
// Takes effect with the next parallel_for. Throws RuntimeError unless 1 <= n <= 1024.
void set_num_threads(int n);

// Calls body(i) for i in [0, count), spread over the pool; returns when all are done and rethrows the first exception.
// Runs serially where called from inside the pool, with one thread, or when the pool is busy with another caller's
// work.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace naru::host
