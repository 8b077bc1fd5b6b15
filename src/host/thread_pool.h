// The one thread pool of the host backends.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace naru::host {

// Threads that take part, the caller included. Default: NARU_NUM_THREADS, else OMP_NUM_THREADS, else the processors
// this process may use (affinity mask and cgroup quota).
int num_threads() noexcept;
// Takes effect with the next parallel_for. Throws RuntimeError unless 1 <= n <= 1024.
void set_num_threads(int n);

// Calls body(i) for i in [0, count), spread over the pool; returns when all are done and rethrows the first exception.
// Runs serially where called from inside the pool, with one thread, or when the pool is busy with another caller's
// work. `nanoseconds`: the time that the whole is thought to take on one thread; where that is short and no worker has come to
// such a job for a while (their processors are busy, or the jobs far apart), it is not worth waking one.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body, double nanoseconds = std::numeric_limits<double>::infinity());

}  // namespace naru::host
