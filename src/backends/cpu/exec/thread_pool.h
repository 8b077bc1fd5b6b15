// The thread pool that all host backends share.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace naru::cpu {

// Number of threads, including the caller. Default: NARU_NUM_THREADS, else OMP_NUM_THREADS, else the processors that this process may use
// (affinity mask and cgroup quota).
int num_threads() noexcept;
// Takes effect with the next parallel_for. Throws RuntimeError unless 1 <= n <= 1024.
void set_num_threads(int n);

// Calls body(i) for i in [0, count) on the pool. Returns when all are done and rethrows the first exception. Runs serially inside the pool,
// with one thread, or while the pool runs another caller's work. `nanoseconds` estimates the total time on one thread. If it is short and
// no worker has joined such a job lately (processors are busy, or jobs are far apart), no worker is woken.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body, double nanoseconds = std::numeric_limits<double>::infinity());

}  // namespace naru::cpu
