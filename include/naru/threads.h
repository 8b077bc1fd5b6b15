// Over how many threads the cpu's work is spread. The setting holds for the process.
#pragma once

namespace naru {

int get_num_threads() noexcept;
// RuntimeError unless 1 <= n <= 1024.
void set_num_threads(int n);

}  // namespace naru
