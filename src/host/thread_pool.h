// The one thread pool of the host backends.
#pragma once

#include <cstdint>
#include <functional>

namespace naru::host {

// Threads that take part, the caller included. Default: the processors this process may use (NARU_NUM_THREADS).
int num_threads() noexcept;
void set_num_threads(int n);

// Calls body(i) for i in [0, count), spread over the pool; returns when all are done and rethrows the first exception. Runs serially where called from
// inside the pool, with one thread, or when the pool is busy with another caller's work.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace naru::host
