// The number of threads for computation on cpu, per process.
#pragma once

namespace naru {

int get_num_threads() noexcept;
// Throws RuntimeError unless 1 <= n <= 1024.
void set_num_threads(int n);

}  // namespace naru
